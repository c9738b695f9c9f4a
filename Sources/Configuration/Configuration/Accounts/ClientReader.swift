internal import OAuth
internal import RingbackBase

/// Reads the client registration and where the client secret is: in one place only, which other users cannot read.
struct ClientReader {
    struct Client {
        var id = ""
        var authentication: ClientAuthentication?
        var secret = ClientSecretSource.none
        var keyFile: String?
        var keyCredential: String?
        var keyID: String?
    }

    static let secretKeys = [
        "client_secret", "client_secret_file", "client_secret_command", "client_secret_credential",
        "client_secret_registered", "client_key_file",
    ]

    let table: SettingTable

    func read(of provider: AccountProvider?) -> Client {
        if table.string("provider") == "supabase" {
            for key in ["client_id", "client_authentication", "client_key_id"] + Self.secretKeys where table.has(key) {
                table.refuse(key, "belongs to OAuth clients; provider = \"supabase\" has api_key instead")
            }
            return Client(authentication: ClientAuthentication.none)
        }
        var client = Client()
        if let id = table.printable("client_id") {
            client.id = id
        } else if !table.isWritten("client_id"), !mayBeUnnamed {
            table.refuse("client_id", "is missing: the id that the provider gave this client when it was registered")
        }
        let places = Self.secretKeys.filter { table.isWritten($0) }
        for key in places.dropFirst() {
            table.refuse(key, "the secret may be in one place only, and \(places[0]) is set already")
        }
        client.secret = readSecret()
        client.keyID = readKeyID()
        client.keyCredential = readKeyCredential()
        if client.keyCredential == nil { client.keyFile = readKeyFile(named: client.keyID) }
        client.authentication = readAuthentication(
            of: provider, hasSecret: places.contains { $0 != "client_key_file" },
            hasKey: table.isWritten("client_key_file"))
        if table.boolean("client_secret_registered") == false {
            table.refuse("client_secret_registered", "is true, or is left out")
        }
        return client
    }

    private func readAuthentication(
        of provider: AccountProvider?, hasSecret: Bool, hasKey: Bool
    ) -> ClientAuthentication? {
        let signed = ClientAuthentication.privateKeyJWT
        if hasKey || table.string("client_authentication") == signed.rawValue {
            let word = table.string("client_authentication") ?? signed.rawValue
            if word != signed.rawValue {
                table.refuse("client_authentication", "is \"\(word)\", but client_key_file is for \(signed.rawValue)")
            } else if !hasKey {
                table.refuse(
                    "client_authentication", "\(word) needs client_key_file, which holds the client's private key")
            }
            return signed
        }
        guard let word = table.string("client_authentication") else {
            if case .preset(let preset) = provider { return preset.clientAuthentication(hasSecret: hasSecret) }
            // With a secret, the provider's metadata determine the method. For an MCP server they always do, because
            // the client may be registered dynamically and then have a secret; a service's client is not.
            if case .mcp = provider, table.serviceKey == nil { return nil }
            return hasSecret ? nil : ClientAuthentication.none
        }
        if word == ClientAuthentication.none.rawValue, hasSecret {
            table.refuse("client_authentication", "is \"none\", but the client has a secret")
        }
        return ClientAuthentication(rawValue: word)
    }

    private func readSecret() -> ClientSecretSource {
        if let secret = table.string("client_secret") {
            if !table.isPrivateFile {
                table.refuse(
                    "client_secret",
                    Mistake(
                        "this file can be read by others", .unsafe(UnsafePath(table.check.file, .readableByOthers))))
            }
            if secret.isEmpty { table.refuse("client_secret", "is empty") }
            if let found = ClientSecretFile.controlCharacter(in: secret.utf8) {
                table.refuse("client_secret", "has a line end or another control character: \(found)")
            }
            return .inline(Secret(secret))
        }
        if let written = table.string("client_secret_file") {
            if let name = CredentialFile.name(in: written) {
                checkCredential(name, "client_secret_file")
                return .credential(name)
            }
            if ["/dev/fd/", "/proc/self/fd/"].contains(where: written.hasPrefix) {
                table.refuse(
                    "client_secret_file",
                    "a descriptor is read once, at the start: set client_secret_credential = \"NAME\" and start the "
                        + "daemon with --credential-fd NAME=N")
                return .none
            }
            guard let path = table.filePath("client_secret_file") else { return .none }
            table.reporting("client_secret_file") { () throws(Mistake) in
                _ = try ClientSecretFile.secret(at: path, user: table.place.user)
            }
            return .file(path: path)
        }
        if let words = table.strings("client_secret_command")?.map(\.text) {
            guard let program = words.first, !program.isEmpty else {
                table.refuse("client_secret_command", "needs a program: [\"pass\", \"show\", \"NAME\"]")
                return .none
            }
            // `~/` is expanded here, because no shell does it.
            guard program.hasPrefix("~/"), let path = table.place.path(program) else { return .command(words) }
            return .command([path] + words.dropFirst())
        }
        if let name = table.string("client_secret_credential") {
            checkCredential(name, "client_secret_credential")
            return .credential(name)
        }
        if table.boolean("client_secret_registered") == true { return .registered }
        return .none
    }

    private func readKeyCredential() -> String? {
        let key = "client_key_file"
        guard let name = table.string(key).flatMap(CredentialFile.name) else { return nil }
        checkCredential(name, key)
        return name
    }

    private func checkCredential(_ name: String, _ key: String) {
        if !CredentialFile.isName(name) {
            table.refuse(key, "is the name of a credential: letters, digits and ._-")
        } else if let reason = table.place.credentials?.mistake(
            of: name, user: table.place.user, isSecret: key != "client_key_file")
        {
            table.refuse(key, reason)
        }
    }

    /// In an assertion grant the client id may be missing (RFC 7521 section 4.1). For an MCP server the client is found
    /// at the sign-in.
    private var mayBeUnnamed: Bool {
        table.isWritten("mcp")
            || table.string("grant").flatMap(ServiceGrantType.init)?.needsAssertion == true
                && !Self.secretKeys.contains { table.isWritten($0) }
    }

    private func readKeyID() -> String? {
        if table.has("client_key_id"), !table.isWritten("client_key_file") {
            table.refuse("client_key_id", "names the key of client_key_file, which is missing")
        }
        return table.printable("client_key_id")
    }

    private func readKeyFile(named keyID: String?) -> String? {
        guard let path = table.filePath("client_key_file") else { return nil }
        table.reporting("client_key_file") { () throws(Mistake) in
            _ = try ClientSecretFile.key(at: path, named: keyID, user: table.place.user)
        }
        return path
    }
}
