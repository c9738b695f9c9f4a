internal import BrokerCore
internal import DeepLinks
internal import Glibc
internal import LocalHTTP
internal import OAuthSignIn
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SessionVault

struct StatusResource: Resource {
    let api: SocketAPI

    /// How long the status waits for the sessions of accounts that are not configured.
    private static let patience: Duration = .seconds(2)

    static let routes: [Route] = [
        Route(.getStatus, "The daemon", .json(.status), StatusResource.status),
        Route(
            .getPeer, "What the broker sees of the caller", .json(.peer), errors: [.notFound], StatusResource.peer),
        Route(
            .reload, "Re-read the configuration", .json(.reloaded), errors: [.invalidConfiguration],
            StatusResource.reload),
    ]

    func status(_ call: Call) async throws(Problem) -> ServerResponse {
        let views = await broker.accounts()
        let counts = AccountState.allCases.map { state in
            JSONObject.Member(state.rawValue, .integer(views.count { $0.state == state }))
        }
        let pending = await broker.pendingRevocations()
        let vault = broker.vault.status
        if !vault.isLocked { await broker.openingSettled() }
        let warnings = await api.closedSockets().map { "\($0.name) is not exposed. \($0.detail.sentence)" }
        var object = JSONObject([
            .init("version", .string(daemon.version)), .init("build", .string(daemon.build)),
            .init("pid", .integer(Int(getpid()))),
            .init("uptime", .integer(api.uptime)), .init("vault", vault.json),
            .init("accounts", .object(JSONObject(counts))),
            .init("listeners", .array(broker.callbackReceiver.listeners().map { .string($0) })),
            .init("confinement", .object(JSONObject())),
            .init("link_listeners", .array((api.deepLinks?.heard ?? []).map { .string($0) })),
            .init("warnings", .array(warnings.map { .string($0) })),
            .init("pending_revocations", .integer(pending.values.reduce(0, +))),
            .init(
                "pending_revocations_by_account",
                .object(
                    JSONObject(pending.sorted { $0.key < $1.key }.map { .init($0.key.rawValue, .integer($0.value)) }))),
        ])
        object["file_warnings"] = .array(api.fileTroubles().map { .string($0) })
        let sealed = await SealedSessions(of: broker).list(atMost: StatusResource.patience)
        object["sealed_sessions"] = sealed.map { .array($0.map { .object($0.members) }) }
        return ServerResponse(json: .object(object))
    }

    /// What the broker knows of the caller. Where the kernel proves which process connected, the executable is that
    /// process's; otherwise it is what `/proc` says of the pid, which may be another process's by now. The executable is
    /// not verified either if it is another one than when the process connected.
    func peer(_ call: Call) async throws(Problem) -> ServerResponse {
        guard case .local(let uid, let pid) = call.request.peer else { throw Problem(.notFound) }
        var object = JSONObject([.init("uid", .integer(Int(uid))), .init("pid", .integer(Int(pid)))])
        let caller = call.facts.caller
        let current = ProcessFacts.executable(of: pid)
        let isVerified = caller?.isVerified == true && (current == nil || current == caller?.executable)
        object["executable"] = (isVerified ? caller?.executable : current).map { .string($0) }
        object["unit"] = (isVerified ? caller?.unit : ProcessFacts.unit(of: pid)).map { .string($0) }
        object["confidence"] = isVerified ? "verified" : "unverified"
        let peer = PolicyPeer(uid: uid, pid: pid)
        let operations = PolicyOperation.allCases.filter {
            api.policy.decide(peer, account: nil, operation: $0).isAllowed
        }
        object["operations"] = .array(operations.map(\.rawValue).sorted().map { .string($0) })
        object["policy"] = .string(api.policy.name)
        return ServerResponse(json: .object(object))
    }

    func reload(_ call: Call) async throws(Problem) -> ServerResponse {
        let outcome = await daemon.reload()
        guard outcome.errors.isEmpty else {
            throw Problem(
                .invalidConfiguration, "Nothing was changed. Correct the mistakes and reload again.",
                extensions: JSONObject([.init("errors", .array(outcome.errors))]))
        }
        let names = await broker.accounts().map(\.name.rawValue)
        var object = JSONObject([.init("reloaded", true), .init("accounts", .array(names.map { .string($0) }))])
        if !outcome.restartNeeded.isEmpty {
            object["restart_needed"] = .array(outcome.restartNeeded.map { .string($0) })
        }
        return ServerResponse(json: .object(object))
    }
}

extension Component {
    fileprivate static let status = Component(
        "Status", .required("version"),
        .required("build", text: "The commit of which the daemon was built; `development` in debug builds"),
        .required("pid", "uptime", "pending_revocations", as: .integer), .required("vault", as: .component(.vault)),
        .required("accounts", "pending_revocations_by_account", as: .map(.integer)),
        .required("listeners", "link_listeners", "warnings", as: .array(.string)),
        .required("confinement", as: .anyObject),
        .required("file_warnings", as: .array(.string), text: "What is wrong with the kept files"),
        .optional(
            "sealed_sessions", as: .array(.component(.sealedSession)),
            text: "Not there while the vault is locked, or the database that hosts share does not answer"))

    private static let operations = PolicyOperation.allCases.map(\.rawValue).sorted()

    fileprivate static let peer = Component(
        "Peer", .required("uid", "pid", as: .integer), .optional("executable", "unit"),
        .required("confidence", as: .words(["verified", "unverified"])),
        .required("operations", as: .array(.words(operations))), .required("policy"))

    fileprivate static let reloaded = Component(
        "Reloaded", .required("reloaded", as: .boolean), .required("accounts", as: .array(.string)),
        .optional("restart_needed", as: .array(.string)))
}

struct DescriptionResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(.getOpenAPI, "This document", .json(.document), DescriptionResource.document)
    ]

    func document(_ call: Call) async throws(Problem) -> ServerResponse {
        ServerResponse(json: OpenAPIDocument.document(version: daemon.version))
    }
}

extension Component {
    fileprivate static let document = Component(
        "Document", .required("openapi"), .required("info", "paths", "components", as: .anyObject),
        .required("servers", as: .array(.anyObject)))
}
