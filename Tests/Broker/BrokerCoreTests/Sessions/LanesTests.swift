import OAuth
import RingbackBase
import TestSupport
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

/// What sign-ins ask about the other accounts is kept in indexes.
@Suite struct `The indexes of the lanes` {
    private static let names = (0..<20).map { House.named("account-\($0)") }

    /// A service, a service through another account's sign-in, or an account that users sign in to.
    private func account(_ name: AccountName, by random: inout SeededGenerator) -> Account {
        var account = House.account(name, issuer: Bool.random(using: &random) ? "https://one" : "https://two")
        switch Int.random(in: 0..<7, using: &random) {
        case 0: account.oauth.grant = ServiceGrant(.clientCredentials)
        case 1:
            let unused = ServiceGrant.AssertionSource { _ throws(BrokerError) in throw .cancelled }
            let upstream = Self.names[Int.random(in: 0..<Self.names.count, using: &random)]
            account.oauth.grant = ServiceGrant(through: upstream, unused)
        default: break
        }
        return account
    }

    private func loaded(by random: inout SeededGenerator) -> LaneState.Loaded {
        var session = laneSession(Bool.random(using: &random) ? "alice" : "bob")
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .absent(.signedOut)
        case 1: return .failed(.cancelled)
        case 2: session.subject = nil
        case 3: session.keeping = .memory
        default: break
        }
        return .session(HeldSession(session))
    }

    private func outcome(by random: inout SeededGenerator) -> LaneState.Outcome {
        // Those that bring a session or show it again are more frequent, so that most accounts have one.
        let frequent: [LaneState.Outcome] = [
            .loaded(loaded(by: &random), isAfterReload: false), .signOutEnded,
            .opened(HeldSession(laneSession("alice")), .signedIn, nil),
            .opened(HeldSession(laneSession("bob")), .signedIn, nil),
        ]
        let rare: [LaneState.Outcome] = [
            .changedElsewhere(loaded(by: &random)), .changed(laneSession("carol"), nil, nil), .dead(code: nil),
            .signOutBegan, .closed(leaving: nil), .closed(leaving: laneSession("bob")), .dropped, .locked,
        ]
        let outcomes = frequent + frequent + frequent + rare
        return outcomes[Int.random(in: 0..<outcomes.count, using: &random)]
    }

    @Test(arguments: 1...5)
    func `agree with a search of all lanes after each change of a session or an account`(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var lanes = Lanes()
        var (sharing, depending, number) = (0, 0, UInt64(0))
        for _ in 0..<1_000 {
            let name = Self.names[Int.random(in: 0..<Self.names.count, using: &random)]
            switch Int.random(in: 0..<50, using: &random) {
            case 0: lanes[name] = nil
            case 1: lanes[name]?.account = account(name, by: &random)
            case 2...5:
                number += 1
                let id = SessionManager.LaneID(account: name, number: number)
                lanes[name] = Lanes.Lane(account: account(name, by: &random), id: id, state: LaneState())
            default: _ = lanes[name]?.state.take(outcome(by: &random), of: name, at: laneNow)
            }
            #expect(lanes.misindexed == [])
            sharing = max(sharing, lanes.values.map { lanes.ofSameUser(as: $0).count }.max() ?? 0)
            depending = max(depending, Self.names.map { lanes.dependents(of: $0).count }.max() ?? 0)
        }
        #expect(sharing > 1 && depending > 0)
    }
}
