#!/bin/sh
# A skill of one Chio, called by curl and by another Chio: see README.md.
set -eu
chio=${CHIO:-chio}
folder=$(mktemp -d)
first= second=

# Both write until they have ended, so their folder goes after them.
clean_up() {
    kill $first $second 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap clean_up EXIT

# Waits until a line of a file says where somebody listens.
address() {
    for _ in $(seq 100); do
        found=$(sed -n 's|.*\(http://127.0.0.1:[0-9]*\)/mcp.*|\1|p' "$1" | head -n 1)
        [ -n "$found" ] && echo "$found" && return
        sleep 0.1
    done
    echo "nobody listens" >&2
    exit 1
}

"$chio" up --data "$folder/one" --listen 127.0.0.1:0 >"$folder/one.log" 2>&1 &
first=$!
one=$(address "$folder/one.log")
echo "The agent is at $one; its card has these skills:"
curl -s "$one/.well-known/agent-card.json" | tr ',' '\n' | sed -n 's/.*"id": *"\([a-z_]*\)".*/  \1/p'

echo "A message to the skill echo:"
curl -s "$one/skills/echo" -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d '{
  "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
  "params": {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}}' |
    sed 's/.*"state":"\([A-Z_]*\)".*/  \1/'
echo

"$chio" a2a serve --target "$one/skills/echo" --server-id friend --data "$folder/two" \
    --http 127.0.0.1:0 --anonymous default >"$folder/two.log" 2>&1 &
second=$!
address "$folder/two.log" >/dev/null
echo "The same skill as a tool of another Chio:"
"$chio" call --data "$folder/two" friend echo '{"message": "hello from far away"}' >/dev/null
"$chio" receipt list --data "$folder/two"
echo "And what the agent has signed:"
"$chio" receipt list --data "$folder/one"
