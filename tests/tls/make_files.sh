#!/usr/bin/env bash
# Makes the certificates and keys in files/, by OpenSSL 3: for whoever needs another. They are good from 2020 to 2120.
#
# Not run by any test: what a test reads is in git. The keys are everybody's, and protect nothing.
set -euo pipefail
cd "$(dirname "$0")/files"
rm -f ./*
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
cat >"$made/settings" <<SETTINGS
[ca]
default_ca = ours
[ours]
database = $made/index
serial = $made/serial
crlnumber = $made/number
new_certs_dir = $made
default_md = sha256
policy = any
preserve = yes
unique_subject = no
default_startdate = 20200101000000Z
default_enddate = 21200101000000Z
[any]
countryName = optional
organizationName = optional
commonName = supplied
SETTINGS
touch "$made/index"
echo 1000 | tee "$made/serial" >"$made/number"
ca() { openssl ca -batch -notext -utf8 -config "$made/settings" "$@"; }
# NAME SUBJECT ISSUER EXTENSIONS
signed() {
    [ -e "$1.key" ] || openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key"
    openssl req -new -key "$1.key" -subj "$2" -utf8 -out "$made/request"
    printf 'subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid:always\n%b' "$4" >"$made/extensions"
    local issuer=(-cert "$3.pem" -keyfile "$3.key")
    [ "$1" != "$3" ] || issuer=(-selfsign -keyfile "$1.key")
    ca "${issuer[@]}" -in "$made/request" -extfile "$made/extensions" -out "$1.pem"
}

authority='basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n'
signed authority '/CN=Test authority' authority "$authority"
signed between '/CN=Between' authority "$authority"

local='subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\nextendedKeyUsage=serverAuth\n'
signed server '/CN=localhost' authority "$local"
signed other '/CN=other.test' authority 'subjectAltName=DNS:other.test,DNS:*.wild.test\n'
openssl genrsa -out rsa.key 2048
signed rsa '/CN=localhost' authority "$local"
signed leaf '/CN=localhost' between "$local"
cat leaf.pem between.pem >chain.pem
cat between.pem leaf.pem >disordered.pem
cat server.key server.pem >both.pem

# The same keys in each form that tools write. The password of all is "a password".
openssl ec -in server.key -out server-sec1.key
openssl ec -in server.key -aes256 -passout 'pass:a password' -out server-sec1-aes256.key
openssl rsa -in rsa.key -traditional -out rsa-pkcs1.key
openssl rsa -in rsa.key -traditional -aes128 -passout 'pass:a password' -out rsa-pkcs1-aes128.key
openssl rsa -in rsa.key -traditional -des3 -passout 'pass:a password' -out rsa-pkcs1-des3.key
openssl pkcs8 -topk8 -in rsa.key -v2 aes-256-cbc -passout 'pass:a password' -out rsa-pkcs8-aes256.key
openssl pkcs8 -topk8 -in server.key -scrypt -passout 'pass:a password' -out server-pkcs8-scrypt.key
openssl pkcs8 -topk8 -in server.key -v2 des3 -v2prf hmacWithSHA1 -passout 'pass:a password' -out server-pkcs8-sha1-des3.key
# And in one that is not taken: too weak.
openssl pkcs8 -topk8 -in server.key -v1 PBE-MD5-DES -provider legacy -provider default \
    -passout 'pass:a password' -out server-pkcs8-md5-des.key
# And for what is not taken.
openssl genpkey -algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048 -out rsa-pss.key

client='extendedKeyUsage=clientAuth\n'
signed client '/C=DE/O=Rot, Weiß \+ Co/CN=alice' between "$client"
cat client.pem between.pem >client-chain.pem
signed revoked '/CN=bob' authority "$client"
signed stranger '/CN=stranger' stranger "$client"
# Of somebody who has signed for nobody.
ca -cert stranger.pem -keyfile stranger.key -gencrl \
    -crl_lastupdate 20200101000000Z -crl_nextupdate 21200101000000Z -out stranger.crl
ca -cert authority.pem -keyfile authority.key -revoke revoked.pem
ca -cert authority.pem -keyfile authority.key -gencrl \
    -crl_lastupdate 20200101000000Z -crl_nextupdate 21200101000000Z -out revoked.crl
rm authority.key between.key between.pem leaf.pem
