import LocalHTTP
import RingbackBase
import SessionVault
import Testing

@testable import APIServer
@testable import BrokerCore

/// A restricted socket in a house where alice is signed in to two accounts and shows one.
struct ExposedHouse {
    let house: APIHouse
    var api: ExposedAPI
    let exposedSocket: ExposedSocket

    init(_ ceiling: [String]? = nil, lifetime: Int? = nil, signsIn: Bool = true) async throws {
        house = try await APIHouse()
        let hidden = try APIHouse.account("hidden")
        try await house.configure([try APIHouse.account("work"), hidden])
        if signsIn { try await house.signIn() }
        // A token with fewer scopes costs the owner's session nothing at this provider, and that is known.
        try await house.broker.vault.store(
            Secret(#"{"downscoping":"keeps"}"#),
            in: VaultSlot(account: "providers", binding: "https://id.example/token", kind: .provider))
        exposedSocket = try await house.exposedSockets.add(
            ExposedSocket.Order(
                name: "ci", accounts: [try #require(AccountName("work"))], ceiling: ceiling,
                allowedUIDs: [100_999], lifetime: lifetime.map { .seconds($0) }))
        api = ExposedAPI(house.api, showing: exposedSocket)
    }

    func ask(
        _ method: String, _ target: String, _ body: String? = nil, fields: [(String, String)] = [],
        uid: UInt32 = 1_000, memory: ConnectionMemory = ConnectionMemory()
    ) async -> APIHouse.Answer {
        var fields = HTTPFields(fields)
        if body != nil { fields.append("Content-Type", "application/json") }
        let response = await api.respond(
            ServerRequest(
                method: method, target: target, fields: fields, body: Array((body ?? "").utf8),
                peer: .local(uid: uid, pid: 4_712), memory: memory))
        var text = ""
        if case .bytes(let bytes) = response.body { text = String(decoding: bytes, as: UTF8.self) }
        for secret in house.provider.secrets where text.contains(secret) { Issue.record("\(target) shows \(secret)") }
        return APIHouse.Answer(response: response, text: text, json: (try? JSON(parsing: Array(text.utf8))) ?? .null)
    }
}
