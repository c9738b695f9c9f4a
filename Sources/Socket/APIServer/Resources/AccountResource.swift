internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON

struct AccountResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(.listAccounts, "Every account, by name", .json(.accounts), AccountResource.listAccounts),
        Route(.getAccount, "One account", .json(.account), errors: .ofAccount, AccountResource.getAccount),
    ]

    func listAccounts(_ call: Call) async throws(Problem) -> ServerResponse {
        let views = await broker.accounts()
        return ServerResponse(json: ["accounts": .array(views.map { $0.json(in: call.language) })])
    }

    func getAccount(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let view = try await call.ask { () throws(BrokerError) in try await broker.account(name) }
        return ServerResponse(json: view.json(in: call.language))
    }
}
