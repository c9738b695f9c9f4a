import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// A token that is bound to a key (RFC 9449): its server takes it only with a proof for each request, so it is of no use to
/// a program that gets it alone.
enum BoundToken {
    /// Throws `state_conflict` for a session whose access token is bound.
    static func refuse(_ answer: JSON) throws(RingbackError) {
        guard answer["token_type"]?.string?.lowercased() == "dpop" else { return }
        let name = answer.text("account")
        throw RingbackError(
            .stateConflict,
            "The access token of \(name) is bound to a key (DPoP): its server takes it only with a proof for each request.",
            advice: advice(name))
    }

    static func advice(_ account: String) -> String {
        "Run: \(shown: "ringback token \(account) --dpop METHOD URL"), or give the program an address (--relay of ringback exec "
            + "and ringback run)."
    }
}

/// `ringback token --dpop METHOD URL`: the fields of one request.
struct ProofOptions: ParsableArguments {
    @Option(
        parsing: .upToNextOption,
        help: .value("method url", "Print the fields of one request: the token, and the proof that it is yours (DPoP).")
    )
    var dpop: [String] = []

    @Option(help: .value("text", "The server's last DPoP-Nonce; with --dpop.")) var nonce: String?

    var isWanted: Bool { !dpop.isEmpty }
    /// The account, where it follows the URL.
    var account: String? { dpop.count == 3 ? dpop[2] : nil }

    func validate() throws {
        try require(dpop.isEmpty || (2...3).contains(dpop.count), "--dpop is a method and a URL: --dpop GET URL.")
        try require(nonce == nil || isWanted, "--nonce needs --dpop.")
    }

    func run(_ account: String, _ calls: BrokerCalls, asJSON: Bool) throws(RingbackError) {
        let request = ProofRequest(method: dpop[0], url: dpop[1], nonce: nonce)
        let answer = try explaining(try calls.proof(request, of: account)) { error in
            error.kind == .policyDenied && error["exposed_socket"] == nil
                ? error.adding("See: \(shown: "ringback origin list")") : error
        }
        guard !asJSON else { return Output.json(answer) }
        let fields = [("Authorization", answer["authorization"]?.string), ("DPoP", answer["dpop"]?.string)]
        var lines: [String] = []
        for case (let name, let value?) in fields {
            guard !value.isEmpty, value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
                throw RingbackError(.badResponse, "The daemon's response has a field that no request can have.")
            }
            lines.append("\(name): \(value)")
        }
        Output.line(lines.joined(separator: "\n"))
    }
}
