alter database {{ database }} connection limit {{ connections }};
