internal import BrokerCore
internal import KeptFiles
internal import LocalHTTP
internal import RingbackAPI
internal import RingbackBase

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
