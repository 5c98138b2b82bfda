export { type ApiClient, apiClient, type RouteDescription, type SendRequest } from "./api-client.js";
export {
  anyObject,
  boolean,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  page,
  type Shape,
  type Shaped,
  ShapeError,
  text,
} from "./shape.js";
