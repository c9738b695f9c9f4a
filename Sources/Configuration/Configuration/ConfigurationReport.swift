internal import MCPBridge
internal import OAuth
public import RingbackBase

/// The result of `ringbackd --check-config`.
public struct ConfigurationReport: Sendable, Equatable {
    /// Nil if there are errors.
    let configuration: DaemonConfiguration?
    public let errors: [ConfigurationError]

    /// True if the daemon would start with this configuration.
    public var isValid: Bool { errors.isEmpty }

    /// - Parameter names: the names of the exposed sockets that API requests created, if they are known.
    public init(of place: ConfigurationPlace, exposedByHand names: Set<String> = []) {
        do throws(ConfigurationErrors) {
            let configuration = try DaemonConfiguration.load(place)
            let clashes = configuration.clashes(with: names)
            guard clashes.isEmpty else { throw ConfigurationErrors(clashes) }
            (self.configuration, errors) = (configuration, [])
        } catch {
            (configuration, errors) = (nil, error.errors)
        }
    }

    /// `{"valid","accounts":[{"name","provider","source","redirect_uri","label"?,"registration","notes"}],"schemes":[
    /// {"name","source","label"?,"command"?,"notes"}],"exposes":[{"name","accounts","mcp"?,"source","notes"}],"origins":[
    /// {"url","account","kind","headers","source"…}],"kept_files":[{"path","account","format","source"}],"runs":[{"name",
    /// "accounts","source"…}],"errors":[…]}`. Each `source` is `{"file","line"}`.
    public var json: String {
        let accounts = configuration?.accounts ?? []
        let shown: [JSONObject] = accounts.map { account in
            [
                "name": account.name, "provider": account.provider.word, "source": account.source.json,
                "redirect_uri": account.redirectURIsToRegister.joined(separator: " "),
                "label": account.label == account.name ? nil : account.label,
                "registration": account.registration, "notes": account.notes,
            ]
        }
        let schemes = (configuration?.schemes ?? []).map { scheme -> JSONObject in
            [
                "name": scheme.name, "source": scheme.source.json, "label": scheme.label, "command": scheme.command,
                "notes": scheme.notes,
            ]
        }
        let exposes = (configuration?.exposes ?? []).map { expose -> JSONObject in
            let rule: JSONObject? = expose.mcp.map { ["methods": $0.methods, "tools": $0.tools] }
            return [
                "name": expose.name, "accounts": expose.accounts, "mcp": rule, "source": expose.source.json,
                "notes": expose.notes(accounts),
            ]
        }
        let object: JSONObject = [
            "valid": isValid, "accounts": shown, "schemes": schemes, "exposes": exposes,
            "origins": (configuration?.origins ?? []).map(\.json),
            "kept_files": (configuration?.keptFiles ?? []).map(\.json),
            "runs": (configuration?.runs ?? []).map(\.json), "default": configuration?.defaultAccount?.json,
            "errors": errors.map(\.json),
        ]
        return JSON.object(object).text
    }
}

extension ConfigurationError {
    /// `{"file","line","key","message","cause","path","socket"}`, without the members that are not known: an element of
    /// `errors` in the socket API.
    public var json: JSON {
        var object: JSONObject = ["file": file, "line": line, "key": key, "message": message]
        switch cause {
        case .unsafe(let unsafe):
            object["cause"] = .string(unsafe.trouble.rawValue)
            object["path"] = .string(unsafe.path)
        case .nameTaken(let socket):
            object["cause"] = "name_taken"
            object["socket"] = .string(socket)
        case nil: break
        }
        return .object(object)
    }
}

extension AccountConfiguration {
    /// What to register at the provider before the first sign-in, as the end of a sentence.
    var registration: String {
        let uris = redirectURIsToRegister.joined(separator: " ")
        guard service == nil else { return "no sign-in" }
        if case .mcp = provider, clientID.isEmpty { return "nothing to register: the client is found at the sign-in" }
        guard case .supabase = provider else { return "redirect URI to register: \(uris)" }
        return uris.isEmpty ? "no redirect URL to add" : "redirect URL to add to the project: \(uris)"
    }

    /// Hints for the user before the first sign-in, one sentence each.
    var notes: [String] {
        var notes: [String] = []
        if let through = service?.through {
            notes.append("It has no sign-in of its own: its tokens come through the sign-in of \(through).")
        } else if let service {
            notes.append("A service account: its tokens come from grant = \"\(service.grant.rawValue)\".")
        }
        if service == nil, case .mcp(let mcp) = provider {
            notes.append("The authorization server is found by asking \(mcp.server.url.place) at each sign-in.")
        }
        if let path = service?.assertionFile, AccountConfiguration.awaitsAssertion(at: path) {
            notes.append("The file \(path) holds no token yet. Until it does, no token can be requested.")
        }
        switch redirect {
        case _ where service != nil: break
        case .loopback("localhost", _, _):
            notes.append("localhost is bound as 127.0.0.1 and as [::1]; if one of them is taken, the sign-in fails.")
        case .loopback(_, let port?, _):
            notes.append("The port \(port) must be free at each sign-in.")
        case .loopback: break
        case .customScheme(let uri):
            let scheme = uri.prefix { $0 != ":" }.lowercased()
            notes.append("The desktop must open \(scheme): links with Ringback.")
            if let note = SchemeConfiguration.note(onClaimsOf: scheme) { notes.append(note) }
        case .https:
            notes.append("The browser does not return by itself: its address has to be pasted.")
        }
        if clientSecret == .none, let clientAuthentication, ![.none, .privateKeyJWT].contains(clientAuthentication) {
            notes.append("\(clientAuthentication.rawValue) needs client_secret_file or client_secret_command: set one.")
        }
        if let name = clientSecretCredential {
            notes.append("The client's secret is the credential \(name), which the daemon is given at its start.")
        }
        if let name = clientKeyCredential {
            notes.append("The client's key is the credential \(name), which the daemon is given at its start.")
        }
        if clientSecret == .registered { notes.append("The client's secret is in the vault, which was not opened.") }
        if case .command = clientSecret { notes.append("The client's secret comes from a command, which was not run.") }
        return notes
    }
}
