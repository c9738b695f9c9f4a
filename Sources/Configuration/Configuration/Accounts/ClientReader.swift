internal import OAuth
internal import RingbackBase

/// Reads the client registration and where the client secret is: in one place only, which other users cannot read.
struct ClientReader {
    /// The client, as far as it could be read.
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

    private var account: AccountTable
    private var table: TOMLTableReader { account.members }

    /// Reports what is wrong at the account.
    static func read(_ account: inout AccountTable, of provider: AccountProvider?) -> Client {
        var reader = ClientReader(account: account)
        defer { account = reader.account }
        return reader.read(of: provider)
    }

    private mutating func read(of provider: AccountProvider?) -> Client {
        if table.string("provider") == "supabase" {
            for key in ["client_id", "client_authentication", "client_key_id"] + Self.secretKeys where table.has(key) {
                account.refuse(key, "belongs to OAuth clients; provider = \"supabase\" has api_key instead")
            }
            return Client(authentication: ClientAuthentication.none)
        }
        var client = Client()
        if let id = table.string("client_id") {
            client.id = id
            if !AccountTable.isPrintable(id) { account.refuse("client_id", "must be printable ASCII") }
        } else if !account.isWritten("client_id"), !mayBeUnnamed {
            account.refuse("client_id", "is missing: the id that the provider gave this client when it was registered")
        }
        let places = Self.secretKeys.filter { account.isWritten($0) }
        for key in places.dropFirst() {
            account.refuse(key, "the secret may be in one place only, and \(places[0]) is set already")
        }
        client.secret = readSecret()
        client.keyID = readKeyID()
        client.keyCredential = readKeyCredential()
        if client.keyCredential == nil { client.keyFile = readKeyFile(named: client.keyID) }
        client.authentication = readAuthentication(
            of: provider, hasSecret: places.contains { $0 != "client_key_file" },
            hasKey: account.isWritten("client_key_file"))
        if table.boolean("client_secret_registered") == false {
            account.refuse("client_secret_registered", "is true, or is left out")
        }
        return client
    }

    private mutating func readAuthentication(
        of provider: AccountProvider?, hasSecret: Bool, hasKey: Bool
    ) -> ClientAuthentication? {
        let signed = ClientAuthentication.privateKeyJWT
        if hasKey || table.string("client_authentication") == signed.rawValue {
            let word = table.string("client_authentication") ?? signed.rawValue
            if word != signed.rawValue {
                account.refuse("client_authentication", "is \"\(word)\", but client_key_file is for \(signed.rawValue)")
            } else if !hasKey {
                account.refuse(
                    "client_authentication", "\(word) needs client_key_file, which holds the client's private key")
            }
            return signed
        }
        guard let word = table.string("client_authentication") else {
            if case .preset(let preset) = provider { return preset.clientAuthentication(hasSecret: hasSecret) }
            // With a secret, the provider's metadata determine the method. For an MCP server they always do, because
            // the client may be registered dynamically and then have a secret.
            if case .mcp = provider { return nil }
            return hasSecret ? nil : ClientAuthentication.none
        }
        if word == ClientAuthentication.none.rawValue, hasSecret {
            account.refuse("client_authentication", "is \"none\", but the client has a secret")
        }
        return ClientAuthentication(rawValue: word)
    }

    private mutating func readSecret() -> ClientSecretSource {
        if let secret = table.string("client_secret") {
            if !account.isPrivateFile {
                account.refuse(
                    "client_secret",
                    Mistake(
                        "this file can be read by others", .unsafe(UnsafePath(account.check.file, .readableByOthers))))
            }
            if secret.isEmpty { account.refuse("client_secret", "is empty") }
            if let found = ClientSecretFile.controlCharacter(in: secret.utf8) {
                account.refuse("client_secret", "has a line end or another control character: \(found)")
            }
            return .inline(Secret(secret))
        }
        if let written = table.string("client_secret_file") {
            if let name = CredentialFile.name(in: written) { return readCredential(name, "client_secret_file") }
            if ["/dev/fd/", "/proc/self/fd/"].contains(where: written.hasPrefix) {
                account.refuse(
                    "client_secret_file",
                    "a descriptor is read once, at the start: set client_secret_credential = \"NAME\" and start the "
                        + "daemon with --credential-fd NAME=N")
                return .none
            }
            guard let path = account.expand("client_secret_file", written) else { return .none }
            do throws(FileTrust.Failure) {
                let content = try FileTrust(user: account.place.user).read(
                    path, isSecret: true, maxSize: ClientSecretFile.maxSize)
                if let reason = ClientSecretFile.mistake(inSecret: content, of: path) {
                    account.refuse("client_secret_file", reason)
                }
            } catch {
                account.refuse("client_secret_file", error.mistake(of: path))
            }
            return .file(path: path)
        }
        if let words = table.strings("client_secret_command")?.map(\.text) {
            guard let program = words.first, !program.isEmpty else {
                account.refuse("client_secret_command", "needs a program: [\"pass\", \"show\", \"NAME\"]")
                return .none
            }
            // `~/` is expanded here, because no shell does it.
            guard program.hasPrefix("~/"), let path = account.place.path(program) else { return .command(words) }
            return .command([path] + words.dropFirst())
        }
        if let name = table.string("client_secret_credential") {
            return readCredential(name, "client_secret_credential")
        }
        if table.boolean("client_secret_registered") == true { return .registered }
        return .none
    }

    private mutating func readCredential(_ name: String, _ key: String) -> ClientSecretSource {
        checkCredential(name, key)
        return .credential(name)
    }

    private mutating func readKeyCredential() -> String? {
        let key = "client_key_file"
        guard let name = table.string(key).flatMap(CredentialFile.name) else { return nil }
        checkCredential(name, key)
        return name
    }

    private mutating func checkCredential(_ name: String, _ key: String) {
        if !CredentialFile.isName(name) {
            account.refuse(key, "is the name of a credential: letters, digits and ._-")
        } else if let reason = account.place.credentials?.mistake(
            of: name, user: account.place.user, isSecret: key != "client_key_file")
        {
            account.refuse(key, reason)
        }
    }

    /// In an assertion grant the client id may be missing (RFC 7521 section 4.1). For an MCP server the client is found
    /// at the sign-in.
    private var mayBeUnnamed: Bool {
        account.isWritten("mcp")
            || table.string("grant").flatMap(ServiceGrantType.init)?.needsAssertion == true
                && !Self.secretKeys.contains { account.isWritten($0) }
    }

    private mutating func readKeyID() -> String? {
        guard let id = table.string("client_key_id") else { return nil }
        if !account.isWritten("client_key_file") {
            account.refuse("client_key_id", "names the key of client_key_file, which is missing")
        }
        if !AccountTable.isPrintable(id) { account.refuse("client_key_id", "must be printable ASCII") }
        return id
    }

    private mutating func readKeyFile(named keyID: String?) -> String? {
        guard let written = table.string("client_key_file"), let path = account.expand("client_key_file", written)
        else {
            return nil
        }
        do throws(FileTrust.Failure) {
            let content = try FileTrust(user: account.place.user).read(
                path, isSecret: true, maxSize: ClientSecretFile.maxSize)
            if let mistake = ClientSecretFile.mistake(inKey: content, named: keyID) {
                account.refuse("client_key_file", mistake)
            }
        } catch {
            account.refuse("client_key_file", error.mistake(of: path))
        }
        return path
    }
}
