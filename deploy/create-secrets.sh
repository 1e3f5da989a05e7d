#!/bin/sh
# Makes the secrets of docker-compose.yml in deploy/secrets, once: what is there stays as it is.
set -eu
folder="$(dirname "$0")/secrets"
mkdir -p "$folder"
# The folder keeps others on this machine out. The files themselves are mounted one by one into containers whose users
# are others than yours, and must be readable there.
chmod 700 "$folder"

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
put() {
  [ -e "$folder/$1" ] || printf '%s\n' "$2" >"$folder/$1"
  chmod 644 "$folder/$1"
}

put postgres_password "$(random)"
put database_url "postgresql://replay_ledger:$(cat "$folder/postgres_password")@postgres:5432/replay_ledger"
put mqtt_password "$(random)"
put api_tokens '# One token a line, as `replay-ledger token create` writes it. Delete a line to revoke its token.'
