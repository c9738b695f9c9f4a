internal import RingbackBase

/// What `POST /sandbox/control` asks for, read whole before anything changes: an unknown key, a wrong type or an
/// unknown name refuses all of it.
struct ControlDocument {
    var settings: SandboxSettings
    var users: [SandboxUser] = []
    var clients: [SandboxClient] = []
    /// The ids of clients that are removed.
    var forgottenClients: [String] = []
    var perturbations: [(Perturbation, Int?)] = []
    var faults: [Fault] = []
    /// Seconds.
    var clockAdvance = 0
    var rotatesKeys = false
    var keepsFormerKeys = false
    var supabase: SupabaseChange?
    var device: DeviceDecision?
    /// The user whose sessions end.
    var revokedUser: RevokedUser?
    var release: Release?
    var clears = false
    var resets = false

    enum RevokedUser {
        case everybody
        case named(String)
    }

    struct Release {
        var endpoint: Endpoint?
        var count: Int?
    }

    /// What was wrong, for the author of the document.
    struct Mistake: Error, Equatable {
        let text: String
    }

    /// Reads a document. It changes the current switches and users, or the initial ones if it resets.
    init(
        parsing body: [UInt8], changing current: (settings: SandboxSettings, users: [SandboxUser]),
        orInitially initial: (settings: SandboxSettings, users: [SandboxUser])
    ) throws(Mistake) {
        let document: JSON
        do {
            document = try JSON(parsing: body)
        } catch {
            throw Mistake(text: "the body is not JSON: \(error)")
        }
        guard let members = document.object?.members else { throw Mistake(text: "the body is not an object") }
        settings = current.settings
        var known = current.users
        // These keys come first, wherever they are in the document: the other keys build on them.
        for member in members {
            switch member.name {
            case "reset":
                resets = try member.bool()
                if resets { (settings, known) = initial }
            case "clear":
                clears = try member.bool()
                if clears { settings.latency = [:] }
            case "users": users = try member.each { item throws(Mistake) in try ControlDocument.user(item) }
            default: break
            }
        }
        known += users
        for member in members {
            if try readSetting(member, known) { continue }
            if try readSwitch(member) { continue }
            if try readAction(member, known) { continue }
            throw Mistake(text: "\(member.name) is not a key of this document")
        }
    }

    private mutating func readSetting(_ member: JSONObject.Member, _ users: [SandboxUser]) throws(Mistake) -> Bool {
        switch member.name {
        case "access_token_lifetime": settings.accessTokenLifetime = try member.integer()
        case "id_token_lifetime": settings.idTokenLifetime = try member.integer()
        case "code_lifetime": settings.codeLifetime = try member.integer()
        case "refresh_token_lifetime": settings.refreshTokenLifetime = try member.isNull ? nil : member.integer()
        case "refresh_expires_in": settings.statesRefreshLifetime = try member.bool()
        case "reuse_grace": settings.reuseGrace = try member.integer()
        case "omit_expires_in": settings.omitsExpiresIn = try member.bool()
        case "rotation": settings.rotates = try member.bool()
        case "id_token_on_refresh": settings.renewsIDToken = try member.bool()
        case "downscope_refresh_tokens": settings.downscopesRefreshTokens = try member.bool()
        case "require_nonce": settings.requiresNonce = try member.bool()
        case "omit_kid": settings.omitsKeyIDs = try member.bool()
        case "algorithm": settings.algorithm = try member.oneOf(SandboxAlgorithm.self)
        case "refresh_tokens": settings.refreshTokens = try member.oneOf(SandboxSettings.RefreshTokens.self)
        case "pushed_requests":
            settings.pushedRequests = try member.oneOf(SandboxSettings.PushedRequests.self)
        case "pushed_status": settings.pushedStatus = try member.integer() == 200 ? 200 : 201
        case "require_response_type": settings.requiresResponseType = try member.bool()
        case "device_grant": settings.offersDevices = try member.bool()
        case "device_interval": settings.deviceInterval = try member.integer()
        case "device_code_lifetime": settings.deviceCodeLifetime = try member.integer()
        case "device_answer": settings.deviceResponse = try member.object()
        case "registration": settings.registration = try member.oneOf(SandboxSettings.Registration.self)
        case "initial_access_token": settings.initialAccessToken = try member.string()
        case "registered_authentication":
            settings.registeredAuthentication =
                try member.isNull ? nil : member.oneOf(SandboxClient.Authentication.self)
        case "registered_secret_lifetime":
            settings.registeredSecretLifetime = try member.isNull ? nil : member.integer()
        case "auto_approve":
            if let isOn = member.value.bool {
                settings.autoApprovedUser = isOn ? users.first?.name : nil
            } else {
                settings.autoApprovedUser = try member.userName(users)
            }
        case "endpoints":
            settings.endpointURLs = [:]
            for place in try member.object().members {
                _ = try place.endpoint(place.name)
                settings.endpointURLs[place.name] = try place.string()
            }
        case "latency":
            for latency in try member.object().members {
                _ = try latency.endpoint(latency.name)
                settings.latency[latency.name] = try latency.integer()
            }
        default: return false
        }
        return true
    }

    private mutating func readSwitch(_ member: JSONObject.Member) throws(Mistake) -> Bool {
        switch member.name {
        case "perturb":
            perturbations = try member.each { item throws(Mistake) in
                if item.value.string != nil { return (try item.oneOf(Perturbation.self), nil) }
                try item.allow(["name", "count"])
                return (
                    try item.required("name").oneOf(Perturbation.self),
                    try item.optional("count")?.integer()
                )
            }
        case "faults": faults = try member.each { item throws(Mistake) in try Fault(parsing: item) }
        default: return false
        }
        return true
    }

    private mutating func readAction(_ member: JSONObject.Member, _ users: [SandboxUser]) throws(Mistake) -> Bool {
        switch member.name {
        case "users", "clear", "reset": break
        case "clients":
            clients = try member.each { item throws(Mistake) in try ControlDocument.client(item) }
        case "forget_clients": forgottenClients = try member.each { id throws(Mistake) in try id.string() }
        case "supabase": supabase = try SupabaseChange(parsing: member)
        case "device": device = try DeviceDecision(parsing: member, users)
        case "advance_clock": clockAdvance = try member.integer()
        case "rotate_keys":
            keepsFormerKeys = member.value.string == "keep"
            rotatesKeys = keepsFormerKeys ? true : try member.bool()
        case "revoke_all":
            if let isEverybody = member.value.bool {
                revokedUser = isEverybody ? .everybody : nil
            } else {
                revokedUser = .named(try member.userName(users))
            }
        case "release":
            if let isAll = member.value.bool {
                release = isAll ? Release() : nil
            } else if let name = member.value.string {
                release = Release(endpoint: try member.endpoint(name))
            } else {
                try member.allow(["endpoint", "count"])
                let named = try member.optional("endpoint")
                release = Release(
                    endpoint: try named.map { item throws(Mistake) in try item.endpoint(item.string()) },
                    count: try member.optional("count")?.integer())
            }
        default: return false
        }
        return true
    }

    private static func user(_ item: JSONObject.Member) throws(Mistake) -> SandboxUser {
        let name = try item.string()
        guard SandboxUser.isName(name) else { throw item.mistake("\"\(name)\" is not [a-z0-9][a-z0-9._-]{0,63}") }
        return SandboxUser(name: name)
    }

    private static func client(_ item: JSONObject.Member) throws(Mistake) -> SandboxClient {
        try item.allow(["id", "secret", "redirect_uris", "loopback", "authentication", "jwks"])
        let authentication = try item.optional("authentication")
        let loopback = try item.optional("loopback")
        let redirectURIs = try item.optional("redirect_uris")
        let jwks = try item.optional("jwks")
        let keys = try jwks.map { set throws(Mistake) in
            guard let keys = SandboxClient.keys(in: set.value) else { throw set.mistake("not a set of public keys") }
            return keys
        }
        return SandboxClient(
            id: try item.required("id").string(), secret: try item.optional("secret")?.string().asSecret,
            redirectURIs: try redirectURIs?.each { uri throws(Mistake) in try uri.string() } ?? [],
            loopback: try loopback?.oneOf(SandboxClient.LoopbackRule.self) ?? .any,
            authentications: try authentication.map { method throws(Mistake) in
                [try method.oneOf(SandboxClient.Authentication.self)]
            }, keys: keys ?? [])
    }
}

extension String {
    fileprivate var asSecret: Secret { Secret(self) }
}

extension Fault {
    fileprivate init(parsing item: JSONObject.Member) throws(ControlDocument.Mistake) {
        try item.allow([
            "endpoint", "grant_type", "path", "kind", "count", "processed", "status", "retry_after", "to", "bytes",
            "error", "message", "body",
        ])
        let status = try item.optional("status")?.integer()
        // The engine sends any status that it is given.
        guard (200...599).contains(status ?? 200) else { throw item.mistake("status is 200 to 599") }
        let name = try item.required("kind")
        switch try name.string() {
        case "status":
            let delay = try item.optional("retry_after")?.value
            kind = .status(status ?? 503, retryAfter: delay?.integer.map(String.init) ?? delay?.string)
        case "html": kind = .html(status: status ?? 200)
        case "redirect": kind = .redirect(to: try item.required("to").string())
        case "hang": kind = .hang
        case "gate": kind = .gate
        case "truncated": kind = .truncated
        case "oversize":
            let size = try item.optional("bytes")?.integer()
            kind = .oversize(min(size ?? 4 << 20, 64 << 20))
        case "invalid_json": kind = .invalidJSON
        case "duplicate_members": kind = .duplicateMembers
        case "empty": kind = .emptyBody(status: status ?? 400)
        case "error":

            let code = try item.optional("error")?.string()
            kind = .refusal(code: code ?? "invalid_grant", status: status ?? 400)
        default:
            throw name.mistake(
                "status, html, redirect, hang, gate, truncated, oversize, invalid_json, duplicate_members, empty, error"
            )
        }
        let place = try item.required("endpoint")
        endpoint = try place.endpoint(place.string())
        grantType = try item.optional("grant_type")?.string()
        path = try item.optional("path")?.string()
        message = try item.optional("message")?.string()
        body = try item.optional("body")?.value
        remaining = try item.optional("count")?.integer()
        if let remaining, remaining < 1 { throw item.mistake("count is at least 1") }
        isProcessed = try item.optional("processed")?.bool() ?? Fault.isProcessedByDefault(kind)
    }
}
