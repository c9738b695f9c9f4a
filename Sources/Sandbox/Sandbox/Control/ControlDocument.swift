internal import RingbackBase

extension ProviderState {
    /// These keys come first, in this order, wherever they are in the document: the other keys build on them.
    private static let first = ["reset", "clear", "users", "advance_clock"]

    /// Applies a document to a copy, so that a mistake changes nothing. Returns it, and the requests to release.
    func changed(by body: [UInt8], at now: Int) throws -> (state: ProviderState, releases: [Release]) {
        let document: JSON
        do {
            document = try JSON(parsing: body)
        } catch {
            throw OAuthError("invalid_request", "the body is not JSON: \(error)")
        }
        let members = try unwrap(document.object, "invalid_request", "the body is not an object").members
        let early = ProviderState.first.compactMap { name in members.first { $0.name == name } }
        var (state, releases) = (self, [Release]())
        for member in early + members.filter({ !ProviderState.first.contains($0.name) }) {
            try state.apply(member, at: now, &releases)
        }
        return (state, releases)
    }

    private mutating func apply(_ member: JSONObject.Member, at now: Int, _ releases: inout [Release]) throws {
        let users = server.issuer.users
        switch member.name {
        case "reset":
            guard try member.bool() else { return }
            reset()
            releases.append(Release(isOfHangs: true))
        case "clear":
            guard try member.bool() else { return }
            server.issuer.settings.latency = [:]
            server.issuer.perturbations = Perturbations()
            faults = Faults()
            releases.append(Release(isOfHangs: true))
        case "users":
            for user in try member.each(SandboxUser.init(reading:)) where server.issuer.user(named: user.name) == nil {
                server.issuer.users.append(user)
            }
        case "advance_clock": clockOffset += try member.integer()
        case "auto_approve":
            server.issuer.settings.autoApprovedUser =
                switch member.value.bool {
                case true?: users.first?.name
                case false?: nil
                case nil: try member.userName(users)
                }
        case "strict": server.issuer.settings.setStrict(try member.bool())
        case "perturb":
            for item in try member.each({ $0 }) {
                let isName = item.value.string != nil
                if !isName { try item.allow(["name", "count"]) }
                let perturbation = try Perturbation(reading: isName ? item : item.required("name"))
                let count = isName ? nil : try item.optional("count")?.integer()
                server.issuer.perturbations.start(perturbation, count: count)
            }
        case "faults": faults.add(try member.each(Fault.init(parsing:)))
        case "clients": for client in try member.each(SandboxClient.init(reading:)) { server.clients.add(client) }
        case "forget_clients": for id in try [String](reading: member) { server.clients.remove(id) }
        case "supabase": try supabase.apply(member, at: now + clockOffset)
        case "device":
            let decision = try DeviceDecision(parsing: member, users)
            server.decide(decision, at: now + clockOffset)
        case "rotate_keys":
            let keepsPublished = member.value.string == "keep"
            guard try keepsPublished || member.bool() else { return }
            server.issuer.keys.rotate(keepsPublished: keepsPublished)
            supabase.keys.rotate(keepsPublished: keepsPublished)
        case "revoke_all":
            guard member.value.bool != false else { return }
            let name = member.value.bool == true ? nil : try member.userName(users)
            var count = server.issuer.ledger.endAll { name == nil || $0.user.name == name }
            if name == nil { count += supabase.sessions.end { _ in true } }
            server.issuer.counters[.endedSessions] += count
        case "release":
            if let isAll = member.value.bool {
                if isAll { releases.append(Release()) }
            } else if let name = member.value.string {
                releases.append(Release(endpoint: try member.endpoint(name)))
            } else {
                try member.allow(["endpoint", "count"])
                releases.append(
                    Release(
                        endpoint: try member.optional("endpoint").map { try $0.endpoint($0.string()) },
                        count: try member.optional("count")?.integer()))
            }
        default: guard try server.issuer.settings.set(member.name, to: member) else { throw member.isUnknown }
        }
    }
}

struct Release {
    /// Nil for every endpoint.
    var endpoint: Endpoint?
    /// Nil for all that wait there.
    var count: Int?
    /// A request at a hang goes only when all do.
    var isOfHangs = false
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
        status = try item.optional("status")?.integer()
        // The engine sends any status that it is given.
        guard (200...599).contains(status ?? 200) else { throw item.mistake("status is 200 to 599") }
        kind = try Kind(reading: item.required("kind"))
        target = try kind == .redirect ? item.required("to").string() : nil
        size = try item.optional("bytes")?.integer() ?? 4 << 20
        let delay = try item.optional("retry_after")?.value
        retryAfter = delay?.integer.map(String.init) ?? delay?.string
        code = try item.optional("error")?.string() ?? "invalid_grant"
        let place = try item.required("endpoint")
        endpoint = try place.endpoint(place.string())
        grantType = try item.optional("grant_type")?.string()
        path = try item.optional("path")?.string()
        message = try item.optional("message")?.string()
        body = try item.optional("body")?.value
        remaining = try item.optional("count")?.integer()
        if let remaining, remaining < 1 { throw item.mistake("count is at least 1") }
        isProcessed = try item.optional("processed")?.bool() ?? kind.isProcessed
    }
}
