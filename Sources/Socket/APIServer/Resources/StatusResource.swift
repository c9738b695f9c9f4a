internal import BrokerCore
internal import DeepLinks
internal import Glibc
internal import KeptFiles
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
        Route(
            .getStatus, "The daemon",
            .json(
                "Status", .required("version"),
                .required("build", text: "The commit that the daemon was built from; `development` in debug builds"),
                .required("pid", "uptime", "pending_revocations", as: .integer),
                .required("vault", as: .component(.vault)),
                .required("accounts", "pending_revocations_by_account", as: .map(.integer)),
                .required("listeners", "link_listeners", "warnings", as: .array(.string)),
                .required(
                    "confinement", as: .object([.required("seccomp", .boolean), .optional("reason", .string)]),
                    text: "Whether the kernel keeps the daemon from starting programs, or why it does not"),
                .required("file_warnings", as: .array(.string), text: "What is wrong with the kept files"),
                .optional(
                    "sealed_sessions", as: .array(.component(.sealedSession)),
                    text: "Not there while the vault is locked, or the database that hosts share does not answer")),
            StatusResource.status),
        Route(.getPeer, "What the broker sees of the caller", .json(.peer), errors: [.notFound], StatusResource.peer),
        Route(
            .reload, "Re-read the configuration",
            .json(
                "Reloaded", .required("reloaded", as: .boolean), .required("accounts", as: .array(.string)),
                .optional("restart_needed", as: .array(.string))), errors: [.invalidConfiguration],
            StatusResource.reload),
    ]

    func status(_ call: Call) async throws(Problem) -> ServerResponse {
        let views = await broker.accounts()
        let pending = await broker.pendingRevocations()
        let vault = broker.vault.status
        if !vault.isLocked { await broker.openingSettled() }
        let warnings = await api.closedSockets().map { "\($0.name) is not exposed. \($0.detail.sentence)" }
        let byAccount = pending.sorted { $0.key < $1.key }.map { account, count in
            JSONObject.Member(account.rawValue, .integer(count))
        }
        let sealed = await SealedSessions(of: broker).list(atMost: StatusResource.patience)
        return ServerResponse([
            "version": daemon.version, "build": daemon.build, "pid": Int(getpid()), "uptime": api.uptime,
            "vault": vault.json, "accounts": views.states, "listeners": broker.callbackReceiver.listeners(),
            "confinement": ["seccomp": daemon.unconfined == nil, "reason": daemon.unconfined] as JSONObject,
            "link_listeners": api.deepLinks?.heard ?? [], "warnings": warnings,
            "pending_revocations": pending.values.reduce(0, +), "pending_revocations_by_account": JSONObject(byAccount),
            "file_warnings": api.fileTroubles(), "sealed_sessions": sealed?.map(\.members),
        ])
    }

    /// What the broker knows of the caller. The executable is verified if the kernel proves which process connected,
    /// and if that still runs it; otherwise it is what `/proc` says of the pid, which may be another process's.
    func peer(_ call: Call) async throws(Problem) -> ServerResponse {
        guard case .local(let uid, let pid) = call.request.peer else { throw Problem(.notFound) }
        let caller = call.facts.caller
        let current = ProcessFacts.executable(of: pid)
        let isVerified = caller?.isVerified == true && (current == nil || current == caller?.executable)
        let peer = PolicyPeer(uid: uid, pid: pid)
        let operations = PolicyOperation.allCases.filter {
            api.policy.decide(peer, account: nil, operation: $0).isAllowed
        }
        return ServerResponse([
            "uid": Int(uid), "pid": Int(pid), "executable": isVerified ? caller?.executable : current,
            "unit": isVerified ? caller?.unit : ProcessFacts.unit(of: pid),
            "confidence": isVerified ? "verified" : "unverified", "operations": operations.map(\.rawValue).sorted(),
            "policy": api.policy.name, "program": api.callingProgram(call).identity.json,
        ])
    }

    func reload(_ call: Call) async throws(Problem) -> ServerResponse {
        let outcome = await daemon.reload()
        guard outcome.errors.isEmpty else {
            throw Problem(
                .invalidConfiguration, "Nothing was changed. Correct the mistakes and reload again.",
                extensions: ["errors": outcome.errors])
        }
        let names = await broker.accounts().map(\.name.rawValue)
        let restartNeeded = outcome.restartNeeded.isEmpty ? nil : outcome.restartNeeded
        return ServerResponse(["reloaded": true, "accounts": names, "restart_needed": restartNeeded])
    }
}

extension Component {
    private static let operations = PolicyOperation.allCases.map(\.rawValue).sorted()

    fileprivate static let peer = Component(
        "Peer", .required("uid", "pid", as: .integer), .optional("executable", "unit"),
        .required("confidence", as: .words(["verified", "unverified"])),
        .required("operations", as: .array(.words(operations))), .required("policy"),
        .required("program", as: .component(.program), text: "For which the caller connected"))
}

struct DescriptionResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .getOpenAPI, "This document",
            .json(
                "Document", .required("openapi"), .required("info", "paths", "components", as: .anyObject),
                .required("servers", as: .array(.anyObject))), DescriptionResource.document)
    ]

    func document(_ call: Call) async throws(Problem) -> ServerResponse {
        ServerResponse(json: OpenAPIDocument.document(version: daemon.version))
    }
}

/// The files in which tokens are kept (`[[file]]`). Their contents are not shown.
struct KeptFileResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .listKeptFiles, "Every file in which a token is kept, in the order of the configuration",
            .json("KeptFiles", .required("files", as: .array(.component(.keptFile)))), KeptFileResource.listKeptFiles)
    ]

    func listKeptFiles(_ call: Call) async throws(Problem) -> ServerResponse {
        let files = daemon.keptFiles().map { view -> JSONObject in
            let file = view.file
            return [
                "path": file.path, "account": file.account.rawValue, "format": file.format.rawValue,
                "state": view.state.rawValue, "scope": file.key.scopes?.joined(separator: " "),
                "audience": file.key.audience, "detail": view.detail?.sentence, "expires_at": view.expiresAt?.seconds,
            ]
        }
        return ServerResponse(["files": files])
    }
}

extension SocketAPI {
    func fileTroubles() -> [String] {
        daemon.keptFiles().compactMap { view in
            view.detail.map { "The file \(view.file.path) of \(view.file.account): \($0.sentence)" }
        }
    }
}

extension Component {
    fileprivate static let keptFile = Component(
        "KeptFile", .required("path", "account"),
        .required("format", as: .words(["token", "id_token", "header", "netrc", "env", "json"])),
        .required("state", as: .oneOf(KeptFileView.State.self)), .optional("scope", "audience"),
        .optional("detail", text: "What is wrong"),
        .optional("expires_at", as: .integer, text: "When the token expires or the ttl is over"))
}
