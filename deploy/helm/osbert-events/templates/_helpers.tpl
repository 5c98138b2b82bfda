{{- define "osbert.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "osbert.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "osbert.labels" -}}
{{ include "osbert.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "osbert.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "osbert.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "osbert.secrets" -}}/etc/osbert/secrets{{- end }}

{{/* osbert.yaml: what the values say, over `settings`. */}}
{{- define "osbert.settings" -}}
{{- $at := include "osbert.secrets" . -}}
{{- $own := dict "data" "/data" "listen" (dict "host" "0.0.0.0" "port" 8080) "events" (mergeOverwrite (deepCopy .Values.events) (dict "enabled" true)) -}}
{{- if .Values.store.secret }}{{ $_ := set $own "store" (dict "file" (printf "%s/store/url" $at)) }}{{ end -}}
{{- if .Values.keys.secret }}{{ $_ := set $own "keys" (dict "file" (printf "%s/keys/keys" $at)) }}{{ end -}}
{{- if .Values.tls.secret }}{{ $_ := set $own "tls" (dict "certificate" (printf "%s/tls/tls.crt" $at) "key" (dict "file" (printf "%s/tls/tls.key" $at))) }}{{ end -}}
{{- if .Values.admin.secret }}{{ $_ := set $own "admin" (dict "credentials" (list (dict "username" .Values.admin.username "password" (dict "file" (printf "%s/admin/password" $at))))) }}{{ end -}}
{{- if .Values.metrics.secret }}{{ $_ := set $own "metrics" (dict "enabled" true "credentials" (list (dict "username" .Values.metrics.username "password" (dict "file" (printf "%s/metrics/password" $at))))) }}{{ end -}}
{{- $credentials := list -}}
{{- range $index, $each := .Values.credentials -}}
{{- $credential := dict "username" $each.username "password" (dict "file" (printf "%s/credential-%d/password" $at $index)) -}}
{{- if $each.namespace }}{{ $_ := set $credential "platform" $each.namespace }}{{ end -}}
{{- $credentials = append $credentials $credential -}}
{{- end -}}
{{- if $credentials }}{{ $_ := set $own "credentials" $credentials }}{{ end -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.settings) $own) -}}
{{- end }}
