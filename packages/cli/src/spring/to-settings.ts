import { didYouMean, type Fault, toValueNode } from "@osbert/server/yaml";
import { catalogFields } from "../settings/catalog-table.js";
import { read } from "../settings/read.js";
import type { Field, Fields } from "../settings/shape.js";
import type { System } from "../settings/system.js";
import { table } from "../settings/table.js";
import { childOf, itemsOf, type PropertyTree, uniform } from "./property-tree.js";
import { fillPlaceholders, springBoolean, springDuration, springSchedule, variableFor } from "./spring-values.js";

export interface Converted {
  /** As one would write them. */
  readonly settings: Settings;
  /** What has no equivalent, or needs a look. */
  readonly notes: readonly Fault[];
}

type Settings = Readonly<Record<string, unknown>>;

/**
 * The settings that say the same as `spring.cloud.openservicebroker` and `com.equalities.osbapi`, and where a broker listens and who may ask.
 * Pure.
 */
export function toSettings(properties: PropertyTree | undefined): Converted {
  const conversion = new Conversion();
  const spring = childOf(properties, "spring", "cloud", "openservicebroker");
  const layer = childOf(properties, "com", "equalities", "osbapi");
  const broker = spring && conversion.broker(spring, "spring.cloud.openservicebroker");
  const kept = layer && conversion.layer(layer, "com.equalities.osbapi");
  const server = childOf(properties, "server");
  const user = childOf(properties, "spring", "security", "user");
  const settings = {
    module: "services.ts",
    ...said({
      listen: server && conversion.server(server, "server"),
      credentials: user && conversion.user(user, "spring.security.user"),
      api: said({ minimumVersion: broker?.minimumVersion, forceDeleteUnknown: kept?.forceDeleteUnknown }),
      cleanup: kept?.cleanup,
      catalog: broker?.services && { services: broker.services },
    }),
  };
  const { faults } = read(table, toValueNode(settings, { kind: "default" }), anySystem(conversion.variables));
  return { settings, notes: [...conversion.notes, ...faults] };
}

const serviceFields = catalogFields.services.shape.of.fields;
const planFields = serviceFields.plans.shape.of.fields;
const schedules = table.cleanup.shape.fields.instances.shape.fields;

class Conversion {
  readonly notes: Fault[] = [];
  /** Variables of the environment that the settings will need. */
  readonly variables = new Set<string>();

  broker(tree: PropertyTree, key: string) {
    this.#others(tree, key, ["api-version", "api-version-check-enabled", "base-path", "catalog"]);
    const catalog = childOf(tree, "catalog");
    if (catalog !== undefined) this.#others(catalog, `${key}.catalog`, ["services"]);
    const services = this.#each(childOf(catalog, "services"), `${key}.catalog.services`, (item, at) =>
      this.#service(item, at),
    );
    const checked = childOf(tree, "api-version-check-enabled");
    if (checked !== undefined && this.#text(checked, `${key}.api-version-check-enabled`) !== "true")
      this.#note(checked, `${key}.api-version-check-enabled`, "has no equivalent: the version is always checked");
    const path = childOf(tree, "base-path");
    if (path !== undefined && this.#text(path, `${key}.base-path`) !== "")
      this.#note(
        path,
        `${key}.base-path`,
        "has no equivalent: osbert serve answers at /v2, or at /NAME/v2 for `platforms`",
      );
    return { services, minimumVersion: this.#version(childOf(tree, "api-version"), `${key}.api-version`) };
  }

  /** Of the many properties of a server those that a broker's settings have, and TLS, which must not get lost in silence. */
  server(tree: PropertyTree, key: string): Settings | undefined {
    const fields = table.listen.shape.fields;
    const port = this.#leaf(childOf(tree, "port"), `${key}.port`, "port", fields.port);
    const host = this.#leaf(childOf(tree, "address"), `${key}.address`, "host", fields.host);
    if (host === undefined)
      this.#note(tree, key, "Spring answers at all addresses of its machine; write listen.host: 0.0.0.0 for that");
    for (const [name, child] of tree.children) {
      if (["port", "address"].includes(uniform(name))) continue;
      const message =
        uniform(name) === "ssl"
          ? "was left out: key stores of Java have no equivalent; write the certificate and its key as PEM to tls.certificate and tls.key"
          : "has no equivalent; it was left out";
      this.#note(child, `${key}.${name}`, message);
    }
    return said({ host, port });
  }

  user(tree: PropertyTree, key: string): readonly Settings[] | undefined {
    this.#others(tree, key, ["name", "password", "roles"]);
    const roles = childOf(tree, "roles");
    if (roles !== undefined) this.#note(roles, `${key}.roles`, "has no equivalent: who may ask may ask for everything");
    const [name, password] = [childOf(tree, "name"), childOf(tree, "password")];
    if (password === undefined) {
      this.#note(tree, key, "has no password; like Spring, osbert serve makes one at its first start");
      return undefined;
    }
    const username = name === undefined ? "user" : this.#text(name, `${key}.name`);
    if (!username) return undefined;
    return [{ username, password: this.#secret(password, `${key}.password`, "spring.security.user.password") }];
  }

  layer(tree: PropertyTree, key: string) {
    this.#others(tree, key, ["service-instances", "service-bindings"]);
    const rule = (name: string) => {
      const [at, own] = [`${key}.${name}`, childOf(tree, name)];
      if (own !== undefined) this.#others(own, at, ["force-delete-unknown", "operations"]);
      const forced = table.api.shape.fields.forceDeleteUnknown.shape.fields.instances;
      const force = this.#leaf(
        childOf(own, "force-delete-unknown"),
        `${at}.force-delete-unknown`,
        "forceDeleteUnknown",
        forced,
      );
      return { force, cleanup: this.#cleanup(childOf(own, "operations"), `${at}.operations`) };
    };
    const [instances, bindings] = [rule("service-instances"), rule("service-bindings")];
    return {
      forceDeleteUnknown: said({ instances: instances.force, bindings: bindings.force }),
      cleanup: said({ instances: instances.cleanup, bindings: bindings.cleanup }),
    };
  }

  #cleanup(tree: PropertyTree | undefined, key: string): Settings | undefined {
    if (tree === undefined) return undefined;
    const names = ["all", "succeeded", "failed"] as const;
    this.#others(tree, key, ["cleanup-age", ...names.map((name) => `cleanup-${name}`)]);
    const found = names.map((name) => {
      const [own, at] = [childOf(tree, `cleanup-${name}`), `${key}.cleanup-${name}`];
      const text = own === undefined ? undefined : this.#text(own, at);
      const schedule = text === undefined ? null : springSchedule(text);
      return [
        name,
        schedule === null ? undefined : this.#checked(schedule, name, schedules[name], own ?? tree, at),
      ] as const;
    });
    const given = said(Object.fromEntries(found));
    const age = childOf(tree, "cleanup-age");
    if (given === undefined) {
      if (age !== undefined)
        this.#note(age, `${key}.cleanup-age`, "means nothing without a schedule, there and here; see `retention`");
      return undefined;
    }
    this.#note(
      tree,
      key,
      "schedules are in UTC here, not in the server's time (see `cleanup.timezone`), and ages count from the end of an operation, not its beginning",
    );
    const text = age === undefined ? "3d" : (springDuration(this.#text(age, `${key}.cleanup-age`) ?? "") ?? "");
    return { ...given, ...said({ age: this.#checked(text, "age", schedules.age, age ?? tree, `${key}.cleanup-age`) }) };
  }

  #service(tree: PropertyTree, key: string): Settings {
    const leaves = [
      "id",
      "description",
      "bindable",
      "plan-updateable",
      "instances-retrievable",
      "bindings-retrievable",
    ];
    const more = ["allow-context-updates", "tags", "requires"];
    this.#others(tree, key, [...leaves, ...more, "name", "metadata", "dashboard-client", "plans"]);
    const own = this.#leaves(tree, key, [...leaves, ...more], serviceFields);
    const name = this.#name(tree, key);
    const plans = this.#each(childOf(tree, "plans"), `${key}.plans`, (item, at) => this.#plan(item, at));
    if (plans === undefined) this.#note(tree, `${key}.plans`, "is missing; a service needs a plan");
    return {
      ...said({ name, use: name }),
      // What is not said is false in Spring; here it would be whether there is a function for it.
      ...own,
      bindable: own.bindable ?? false,
      ...this.#serviceMetadata(childOf(tree, "metadata"), `${key}.metadata`),
      ...said({ dashboardClient: this.#dashboard(childOf(tree, "dashboard-client"), `${key}.dashboard-client`, name) }),
      ...said({ plans }),
    };
  }

  #serviceMetadata(tree: PropertyTree | undefined, key: string): Settings | undefined {
    if (tree === undefined) return undefined;
    const leaves = ["display-name", "long-description", "provider-display-name", "documentation-url", "support-url"];
    this.#others(tree, key, [...leaves, "image-url", "image-url-resource", "properties"]);
    const resource = childOf(tree, "image-url-resource");
    const place = resource && this.#text(resource, `${key}.image-url-resource`);
    const isUrl = place !== undefined && /^(https?|data):/i.test(place);
    const image = isUrl ? undefined : place?.replace(/^(classpath\*?|file):\/*/i, "");
    if (resource !== undefined && image)
      this.#note(
        resource,
        `${key}.image-url-resource`,
        `put ${image} next to the settings; Spring looks for it in its resources`,
      );
    const url = childOf(tree, "image-url");
    const imageUrl = isUrl ? place : url && this.#text(url, `${key}.image-url`);
    const properties = childOf(tree, "properties");
    const free = properties && this.#object(properties, `${key}.properties`);
    return {
      ...this.#leaves(tree, key, leaves, serviceFields),
      ...said({ image: image || undefined, metadata: said({ ...free, ...said({ imageUrl }) }) }),
    };
  }

  #dashboard(tree: PropertyTree | undefined, key: string, service: string | undefined): Settings | undefined {
    if (tree === undefined) return undefined;
    this.#others(tree, key, ["id", "secret", "redirect-uri"]);
    const fields = serviceFields.dashboardClient.shape.fields;
    const own = this.#leaves(tree, key, ["id", "redirect-uri"], fields);
    const secret = childOf(tree, "secret");
    if (own.id === undefined || secret === undefined) {
      this.#note(tree, key, "needs an id and a secret; it was left out");
      return undefined;
    }
    const { id } = own;
    return { id, secret: this.#secret(secret, `${key}.secret`, `${service ?? "service"}_DASHBOARD_SECRET`), ...own };
  }

  /** Of the variable that Spring fills it in from, if it does, else of one with that name. */
  #secret(tree: PropertyTree, key: string, name: string): Settings {
    const [, property] = /^\$\{([^{}:]+)(?::[^{}]*)?\}$/.exec(tree.scalar?.text ?? "") ?? [];
    const variable = variableFor(property ?? name);
    this.variables.add(variable);
    this.#note(tree, key, `is not repeated here; give it as the environment variable ${variable}`);
    return { env: variable };
  }

  #plan(tree: PropertyTree, key: string): Settings {
    const leaves = ["id", "description", "free", "bindable", "plan-updateable", "maximum-polling-duration"];
    this.#others(tree, key, [...leaves, "name", "maintenance-info", "metadata", "schemas"]);
    const maintenance = childOf(tree, "maintenance-info");
    if (maintenance !== undefined) this.#others(maintenance, `${key}.maintenance-info`, ["version", "description"]);
    const maintenanceInfo =
      maintenance &&
      said(
        this.#leaves(
          maintenance,
          `${key}.maintenance-info`,
          ["version", "description"],
          planFields.maintenanceInfo.shape.fields,
        ),
      );
    return {
      ...said({ name: this.#name(tree, key) }),
      ...this.#leaves(tree, key, leaves, planFields),
      ...said({ maintenanceInfo: maintenanceInfo?.version === undefined ? undefined : maintenanceInfo }),
      ...this.#planMetadata(childOf(tree, "metadata"), `${key}.metadata`),
      ...said({ schemas: this.#schemas(childOf(tree, "schemas"), `${key}.schemas`) }),
    };
  }

  #planMetadata(tree: PropertyTree | undefined, key: string): Settings | undefined {
    if (tree === undefined) return undefined;
    this.#others(tree, key, ["display-name", "bullets", "costs", "properties"]);
    const costs = this.#each(childOf(tree, "costs"), `${key}.costs`, (item, at) => {
      this.#others(item, at, ["amount", "unit"]);
      const amount = childOf(item, "amount");
      const amounts = [...(amount?.children ?? [])].map(
        ([currency, own]) => [currency, Number(this.#text(own, at))] as const,
      );
      const unit = childOf(item, "unit");
      return said({ amount: Object.fromEntries(amounts), unit: unit && this.#text(unit, `${at}.unit`) }) ?? {};
    });
    const properties = childOf(tree, "properties");
    return said({
      ...this.#leaves(tree, key, ["display-name", "bullets"], planFields),
      costs: costs && this.#checked(costs, "costs", planFields.costs, childOf(tree, "costs") ?? tree, `${key}.costs`),
      metadata: properties && said(this.#object(properties, `${key}.properties`)),
    });
  }

  #schemas(tree: PropertyTree | undefined, key: string): Settings | undefined {
    if (tree === undefined) return undefined;
    this.#others(tree, key, ["serviceinstance", "servicebinding"]);
    const schema = (...path: readonly string[]) => {
      const found = childOf(tree, ...path, "parameters");
      return found === undefined ? undefined : this.#object(found, [key, ...path, "parameters"].join("."));
    };
    return said({
      provision: schema("serviceinstance", "create"),
      update: schema("serviceinstance", "update"),
      bind: schema("servicebinding", "create"),
    });
  }

  /** Everything below is the author's own: names stay as they were written. */
  #object(tree: PropertyTree, key: string): Settings {
    const value = this.#free(tree, key);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Settings;
    this.#note(tree, key, "must be an object; it was left out");
    return {};
  }

  #free(tree: PropertyTree, key: string): unknown {
    const { scalar, children, place } = tree;
    if (scalar !== undefined) {
      if (typeof scalar.value !== "string") return scalar.value;
      const text = this.#text(tree, key);
      // In a .properties file everything is a text; a schema with numbers in quotes would be none.
      const isText = place.kind !== "file" || !/\.properties$/i.test(place.file);
      return isText || text === undefined ? text : (typed(text) ?? text);
    }
    const items = itemsOf(tree);
    if (items !== undefined) return items.map((item, index) => this.#free(item, `${key}[${index}]`));
    return Object.fromEntries([...children].map(([name, child]) => [name, this.#free(child, `${key}.${name}`)]));
  }

  #name(tree: PropertyTree, key: string): string | undefined {
    const own = childOf(tree, "name");
    const name = own && this.#text(own, `${key}.name`);
    for (const field of ["id", "name", "description"])
      if (childOf(tree, field) === undefined)
        this.#note(tree, `${key}.${field}`, "is missing; write it before you use this");
    return name;
  }

  #version(tree: PropertyTree | undefined, key: string): unknown {
    const text = tree && this.#text(tree, key);
    if (tree === undefined || text === undefined || text === "*") return undefined;
    this.#note(tree, key, "later versions are accepted, too");
    return this.#checked(text, "minimumVersion", table.api.shape.fields.minimumVersion, tree, key);
  }

  /** Properties whose setting has the same name in camel case. */
  #leaves(tree: PropertyTree, key: string, names: readonly string[], fields: Fields): Record<string, unknown> {
    const found = names.map((name) => {
      const setting = name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
      return [setting, this.#leaf(childOf(tree, name), `${key}.${name}`, setting, fields[setting] as Field)] as const;
    });
    return said(Object.fromEntries(found)) ?? {};
  }

  #leaf(tree: PropertyTree | undefined, key: string, name: string, field: Field): unknown {
    if (tree === undefined || tree.scalar?.value === null) return undefined;
    if (field.shape.kind === "list") {
      const items = itemsOf(tree)?.map((item, index) => this.#text(item, `${key}[${index}]`));
      const list =
        items ??
        this.#text(tree, key)
          ?.split(",")
          .map((item) => item.trim());
      return list === undefined || list.length === 0 ? undefined : this.#checked(list, name, field, tree, key);
    }
    const text = this.#text(tree, key);
    if (text === undefined) return undefined;
    const kind = field.shape.kind;
    const value = kind === "flag" ? springBoolean(text) : kind === "number" ? (typed(text) ?? text) : text;
    return this.#checked(value ?? text, name, field, tree, key);
  }

  /** A value that the setting takes; else it is left out, with a note. */
  #checked(value: unknown, name: string, field: Field, tree: PropertyTree, key: string): unknown {
    const { faults } = read({ [name]: field }, toValueNode({ [name]: value }, tree.place), anySystem(new Set()));
    for (const { message } of faults) this.#note(tree, key, `was left out, because the setting ${name} ${message}`);
    return faults.length === 0 ? value : undefined;
  }

  #text(tree: PropertyTree, key: string): string | undefined {
    const { scalar } = tree;
    if (scalar === undefined) {
      this.#note(tree, key, "must be a text; it was left out");
      return undefined;
    }
    const { text, placeholders } = fillPlaceholders(typeof scalar.value === "string" ? scalar.value : scalar.text);
    for (const { name, hasDefault } of placeholders)
      this.#note(
        tree,
        key,
        `had \${${name}} in it, which Spring fills in; ${hasDefault ? "its default stands here" : "write what it stands for"}`,
      );
    return text;
  }

  #each<T>(
    tree: PropertyTree | undefined,
    key: string,
    convert: (item: PropertyTree, key: string) => T,
  ): readonly T[] | undefined {
    if (tree === undefined || tree.scalar?.value === null) return undefined;
    const items = itemsOf(tree);
    if (items === undefined) this.#note(tree, key, "must be a list; it was left out");
    return items === undefined || items.length === 0
      ? undefined
      : items.map((item, index) => convert(item, `${key}[${index}]`));
  }

  #others(tree: PropertyTree, key: string, known: readonly string[]): void {
    const names = new Set(known.map(uniform));
    for (const [name, child] of tree.children)
      if (!names.has(uniform(name)))
        this.#note(child, `${key}.${name}`, `is no property of Spring's; it was left out${didYouMean(name, known)}`);
  }

  #note({ place }: PropertyTree, key: string, message: string): void {
    this.notes.push({ place, key, message });
  }
}

/** Only what is there; `undefined` if nothing is. */
function said(values: Readonly<Record<string, unknown>>): Settings | undefined {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function typed(text: string): number | boolean | undefined {
  if (text === "true" || text === "false") return text === "true";
  return /^-?[0-9]{1,15}(\.[0-9]{1,15})?$/.test(text) ? Number(text) : undefined;
}

/** A world in which pictures are there, and the variables that settings will need. */
function anySystem(variables: ReadonlySet<string>): System {
  return {
    environment: Object.fromEntries([...variables].map((name) => [name, "set"])),
    folder: "/",
    readFile: () => Buffer.from("<svg></svg>"),
  };
}
