#!/bin/sh
# Healthy: a client with the password gets a message.
exec mosquitto_sub -u replay-ledger -P "$(cat /run/secrets/mqtt_password)" -t '$SYS/broker/version' -C 1 -W 3 >/dev/null
