#!/bin/sh
# Makes the certificates of the TLS tests: an authority, a server on 127.0.0.1, a client. For tests only.
set -eu
cd "$(dirname "$0")"
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
sign() {
  openssl req -new -key "$1.key" -subj "/CN=$1 of the tests" |
    openssl x509 -req -CA authority.pem -CAkey authority.key -set_serial "$2" -days 36500 -extfile "$3" -out "$1.pem"
}
key authority
openssl req -x509 -new -key authority.key -subj "/CN=authority of the tests" -days 36500 -out authority.pem
extensions=$(mktemp)
echo "subjectAltName=IP:127.0.0.1,DNS:localhost" >"$extensions"
key server && sign server 2 "$extensions"
: >"$extensions"
key client && sign client 3 "$extensions"
rm "$extensions" authority.key # nothing more is ever to be signed by it
chmod 644 ./*.key ./*.pem
