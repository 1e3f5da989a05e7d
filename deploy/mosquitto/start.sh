#!/bin/sh
# Starts the broker with one user, `replay-ledger`, whose password is a secret: mosquitto reads hashes from a file.
set -eu
umask 077
mosquitto_passwd -c -b /mosquitto/passwords replay-ledger "$(cat /run/secrets/mqtt_password)"
chown -R mosquitto:mosquitto /mosquitto/passwords /mosquitto/data
exec mosquitto -c /mosquitto/config/mosquitto.conf
