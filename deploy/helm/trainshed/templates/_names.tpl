{{- define "trainshed.labels" -}}
{{ include "trainshed.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "trainshed.selector" -}}
app.kubernetes.io/name: trainshed
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "trainshed.account" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end -}}

{{- define "trainshed.jobs" -}}
{{ .Values.jobs.namespace | default .Release.Namespace }}
{{- end -}}

{{- /* Names of objects outside the namespace: two installations may have one name. */ -}}
{{- define "trainshed.wide" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end -}}

{{- define "trainshed.claim" -}}
{{ .Values.volume.existingClaim | default (printf "%s-home" .Release.Name) }}
{{- end -}}

{{- define "trainshed.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{ .Values.image.repository }}{{ ternary "@" ":" (hasPrefix "sha256:" $tag) }}{{ $tag }}
{{- end -}}

{{- /* Whom rights are given to. */ -}}
{{- define "trainshed.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "trainshed.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
