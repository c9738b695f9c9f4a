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

    /// Reads a document. It changes the current switches and users, or the initial ones if it resets.
    init(
        parsing body: [UInt8], changing current: (settings: SandboxSettings, users: [SandboxUser]),
        orInitially initial: (settings: SandboxSettings, users: [SandboxUser])
    ) throws {
        let document: JSON
        do {
            document = try JSON(parsing: body)
        } catch {
            throw OAuthError("invalid_request", "the body is not JSON: \(error)")
        }
        let members = try unwrap(document.object, "invalid_request", "the body is not an object").members
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
            case "users": users = try member.each(SandboxUser.init(reading:))
            default: break
            }
        }
        known += users
        for member in members {
            if try settings.set(member.name, to: member) { continue }
            guard try read(member, known) else { throw member.isUnknown }
        }
    }

    private mutating func read(_ member: JSONObject.Member, _ users: [SandboxUser]) throws -> Bool {
        switch member.name {
        case "users", "clear", "reset": break
        case "auto_approve":
            settings.autoApprovedUser =
                switch member.value.bool {
                case true?: users.first?.name
                case false?: nil
                case nil: try member.userName(users)
                }
        case "perturb":
            perturbations = try member.each { item in
                if item.value.string != nil { return (try Perturbation(reading: item), nil) }
                try item.allow(["name", "count"])
                return (try Perturbation(reading: item.required("name")), try item.optional("count")?.integer())
            }
        case "faults": faults = try member.each(Fault.init(parsing:))
        case "clients": clients = try member.each(SandboxClient.init(reading:))
        case "forget_clients": forgottenClients = try [String](reading: member)
        case "supabase": supabase = try SupabaseChange(parsing: member)
        case "device": device = try DeviceDecision(parsing: member, users)
        case "advance_clock": clockAdvance = try member.integer()
        case "rotate_keys":
            keepsFormerKeys = member.value.string == "keep"
            rotatesKeys = keepsFormerKeys ? true : try member.bool()
        case "revoke_all":
            revokedUser =
                switch member.value.bool {
                case true?: .everybody
                case false?: nil
                case nil: .named(try member.userName(users))
                }
        case "release":
            if let isAll = member.value.bool {
                release = isAll ? Release() : nil
            } else if let name = member.value.string {
                release = Release(endpoint: try member.endpoint(name))
            } else {
                try member.allow(["endpoint", "count"])
                release = Release(
                    endpoint: try member.optional("endpoint").map { try $0.endpoint($0.string()) },
                    count: try member.optional("count")?.integer())
            }
        default: return false
        }
        return true
    }
}

extension SandboxUser {
    fileprivate init(reading item: JSONObject.Member) throws {
        let name = try item.string()
        guard SandboxUser.isName(name) else { throw item.mistake("\"\(name)\" is not [a-z0-9][a-z0-9._-]{0,63}") }
        self.init(name: name)
    }
}

extension SandboxClient {
    fileprivate init(reading item: JSONObject.Member) throws {
        try item.allow(["id", "secret", "redirect_uris", "loopback", "authentication", "jwks"])
        let keys = try item.optional("jwks").map { set in
            guard let keys = SandboxClient.keys(in: set.value) else { throw set.mistake("not a set of public keys") }
            return keys
        }
        let loopback = try item.optional("loopback").map(LoopbackRule.init(reading:))
        let authentication = try item.optional("authentication").map(Authentication.init(reading:))
        self.init(
            id: try item.required("id").string(), secret: try (item.optional("secret")?.string()).map { Secret($0) },
            redirectURIs: try item.optional("redirect_uris").map([String].init(reading:)) ?? [],
            loopback: loopback ?? .any, authentications: authentication.map { [$0] }, keys: keys ?? [])
    }
}

extension Fault {
    fileprivate init(parsing item: JSONObject.Member) throws {
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
