import Secrets
import StrictJSON
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

private let name = House.name
private let now = BootInstant(milliseconds: 1_000_000)
private let alice = session("alice")
private let bob = session("bob")
private let down = BrokerError.provider(.unavailable(status: 503, retryAfter: 600))
private let full = BrokerError.vaultFailed("The disk is full.")

private func session(_ subject: String) -> Session {
    Session(
        refreshToken: Secret("refresh of \(subject)"), unvalidatedRefreshToken: nil, identity: nil, subject: subject,
        user: nil, scope: nil, issuer: "https://id.example", tokenEndpointOrigin: "https://id.example", signedInAt: 5,
        end: nil, rotates: true,
        tokens: [.own: AccessToken(value: Secret("access of \(subject)"), type: "Bearer", scope: nil)])
}

private func reached(_ outcomes: LaneState.Outcome...) -> LaneState {
    var state = LaneState()
    for outcome in outcomes { _ = state.take(outcome, of: name, at: now) }
    return state
}

private func held(_ copy: LaneState.Copy, isUrgent: Bool = false) -> LaneState.Outcome {
    .loaded(.session(alice, copy, isUrgent: isUrgent), isNews: false)
}

/// What follows from an outcome, in a word each.
private func words(_ effects: [LaneState.Effect]) -> [String] {
    effects.map {
        switch $0 {
        case .publish: "publish"
        case .schedule: "schedule"
        case .retryLoading: "retry loading"
        case .wake: "wake"
        case .record(let fact): String(String(describing: fact).prefix { $0 != "(" })
        case .post(let kind, _, _): kind.rawValue
        }
    }
}

/// The presence in a word.
private func word(_ state: LaneState) -> String {
    let presence =
        switch state.presence {
        case .loading(nil): "loading"
        case .loading: "unread"
        case .absent(.signedOut): "absent"
        case .absent(.ended): "ended"
        case .absent(.unreadable): "unreadable"
        case .untouchable: "untouchable"
        case .held(let session, let copy, let isUrgent): "\(session.subject ?? "") \(copy)\(isUrgent ? " urgent" : "")"
        }
    return state.signOutsInProgress > 0 ? presence + ", closing" : presence
}

@Suite struct `The state of an account's lane` {
    /// A lane in each state, reached the way a daemon reaches it.
    private static let states: [LaneState] = [
        reached(),
        reached(.loaded(.failed(full), isNews: false)),
        reached(.loaded(.absent(.signedOut), isNews: false)),
        reached(held(.stored), .dead(code: "x")),
        reached(.loaded(.absent(.unreadable(full)), isNews: false)),
        reached(.loaded(.untouchable(full), isNews: false)),
        reached(held(.stored)),
        reached(held(.unsaved)),
        reached(held(.memoryOnly)),
        reached(held(.stored, isUrgent: true)),
        reached(held(.stored), .signOutBegan),
    ]
    private static let outcomes: [(name: String, outcome: LaneState.Outcome)] = [
        ("loaded", .loaded(.session(bob, .stored, isUrgent: false), isNews: false)),
        ("loaded nothing", .loaded(.absent(.signedOut), isNews: false)),
        ("not loaded", .loaded(.failed(down), isNews: false)),
        ("opened", .opened(bob, .stored, .signedIn, nil)),
        ("sign-in began", .signInBegan),
        ("refresh began", .refreshBegan(.own, Promise())),
        ("rotated", .rotated(bob, .unsaved, full)),
        ("renewed", .renewed(bob, .stored, nil)),
        ("changed", .changed(bob, .stored, .userUpdated, nil)),
        ("failed", .failed(down, isOfRequest: false)),
        ("request failed", .failed(down, isOfRequest: true)),
        ("refresh ended", .refreshEnded(.own, .success(()))),
        ("change began", .changeBegan),
        ("change ended", .changeEnded),
        ("became urgent", .becameUrgent),
        ("dead", .dead(code: "x")),
        ("saved", .saved),
        ("not saved", .notSaved),
        ("sign-out began", .signOutBegan),
        ("closed", .closed(leaving: nil)),
        ("tokens dropped", .closed(leaving: bob)),
        ("sign-out ended", .signOutEnded),
        ("dropped", .dropped),
        ("locked", .locked),
        ("replaced", .replaced),
        ("noticed", .noticed(full, .signInFailed)),
        ("network returned", .networkReturned),
        ("mended", .mended),
    ]

    /// What is left, where an outcome changes the state.
    private static let table: [String: [String: String]] = [
        "loading": [
            "loaded": "bob stored", "loaded nothing": "absent", "not loaded": "unread",
            "sign-out began": "loading, closing",
        ],
        "unread": [
            "loaded": "bob stored", "loaded nothing": "absent", "sign-out began": "unread, closing",
            "locked": "loading", "replaced": "loading",
        ],
        "absent": [
            "opened": "bob stored", "sign-out began": "absent, closing", "locked": "loading", "replaced": "loading",
        ],
        "ended": [
            "opened": "bob stored", "sign-in began": "absent", "sign-out began": "absent, closing",
            "locked": "loading", "replaced": "loading",
        ],
        "unreadable": [
            "opened": "bob stored", "sign-in began": "absent", "sign-out began": "absent, closing",
            "locked": "loading", "replaced": "loading",
        ],
        "untouchable": ["sign-out began": "untouchable, closing", "locked": "loading", "replaced": "loading"],
        "alice stored": transitions("alice stored"),
        "alice unsaved": transitions("alice unsaved", ["saved": "alice stored"]),
        "alice memoryOnly": transitions("alice memoryOnly", ["dropped": "absent"]),
        "alice stored urgent": transitions(
            "alice stored urgent", ["rotated": "bob unsaved urgent", "changed": "bob stored urgent"]),
        "alice stored, closing": transitions("alice stored", ["sign-out began": "alice stored, closing"]).mapValues {
            $0.hasSuffix("closing") ? $0 : $0 + ", closing"
        }.merging(["sign-out ended": "alice stored"]) { $1 },
    ]

    private static func transitions(_ word: String, _ more: [String: String] = [:]) -> [String: String] {
        let isUrgent = word.hasSuffix("urgent")
        return [
            "opened": "bob stored", "rotated": "bob unsaved", "renewed": "bob stored", "changed": "bob stored",
            "became urgent": isUrgent ? word : word + " urgent", "dead": "ended",
            "sign-out began": word + ", closing", "closed": "absent", "tokens dropped": "bob memoryOnly",
            "locked": "loading", "replaced": "loading",
        ].merging(more) { $1 }
    }

    @Test func `every outcome in every state leaves what the table says`() {
        for start in Self.states {
            for (what, outcome) in Self.outcomes {
                var state = start
                _ = state.take(outcome, of: name, at: now)
                let expected = Self.table[word(start)]?[what] ?? word(start)
                #expect(word(state) == expected, "\(what) while \(word(start))")
            }
        }
    }

    @Test func `after every outcome in every state readers see a session only if it is held and no sign-out waits`() {
        for start in Self.states {
            for (what, outcome) in Self.outcomes {
                var state = start
                let effects = words(state.take(outcome, of: name, at: now))
                #expect(state.signOutsInProgress == 0 || state.visible == nil, "\(what) while \(word(start))")
                let sees = start.visible?.subject != state.visible?.subject
                #expect(!sees || effects.contains("publish"), "\(what) while \(word(start)) is not published")
                #expect(!sees || effects.contains("schedule"), "\(what) while \(word(start)) is not planned")
            }
        }
    }

    @Test func `whoever waits for the vault is woken when it has said something, and when the wait is pointless`() {
        for start in Self.states {
            for (what, outcome) in Self.outcomes {
                var state = start
                let effects = words(state.take(outcome, of: name, at: now))
                let isOver = !start.isLoaded && (state.isLoaded || what == "not loaded")
                #expect(!isOver || effects.contains("wake"), "\(what) while \(word(start))")
            }
        }
    }

    @Test func `a refresh that ends after the sign-out brings nothing back`() {
        var state = reached(held(.stored), .signOutBegan, .closed(leaving: nil), .signOutEnded)
        for outcome: LaneState.Outcome in [.rotated(bob, .stored, nil), .renewed(bob, .stored, nil), .saved] {
            #expect(words(state.take(outcome, of: name, at: now)).isEmpty)
        }
        #expect(state.session == nil)
    }

    @Test func `of two sign-outs the first ends the session and the second changes nothing`() {
        var state = reached(held(.stored), .signOutBegan, .signOutBegan)
        #expect(words(state.take(.closed(leaving: nil), of: name, at: now)).contains("signed_out"))
        _ = state.take(.signOutEnded, of: name, at: now)
        #expect(words(state.take(.closed(leaving: nil), of: name, at: now)).isEmpty)
        #expect(state.signOutsInProgress == 1)
    }

    @Test func `a provider's wait outlives the session, a lock and an unlock`() {
        let failed = LaneState.Outcome.failed(down, isOfRequest: false)
        for state in [
            reached(held(.stored), failed, .locked, held(.stored)), reached(held(.stored), failed, .dead(code: nil)),
            reached(held(.stored), failed, .closed(leaving: nil)),
            reached(held(.stored), failed, .closed(leaving: bob)),
        ] {
            let refusal = state.renewal.backoff.refusalByProvider(at: now + .seconds(300))
            #expect(refusal == .provider(.unavailable(status: 503, retryAfter: 300)))
        }
        let renewed = reached(held(.stored), failed, .renewed(bob, .stored, nil))
        #expect(renewed.renewal.backoff.error == nil)
    }

    @Test func `a failure is shown until the next sign-in, sign-out or refresh begins`() {
        for next: LaneState.Outcome in [.signInBegan, .signOutBegan, .refreshBegan(.own, Promise())] {
            var state = reached(held(.stored), .failed(down, isOfRequest: false))
            #expect(state.error(of: name) == down)
            _ = state.take(next, of: name, at: now)
            #expect(state.error(of: name) == nil)
        }
        #expect(reached(held(.stored), .dead(code: "x")).error(of: name) == .sessionExpired(name, word: "x"))
        #expect(reached(.loaded(.untouchable(full), isNews: false), .signInBegan).error(of: name) == full)
    }

    @Test func `a session that comes back with a reload is told as a sign-in, one that is loaded at start is not`() {
        for isNews in [true, false] {
            var state = LaneState()
            let loaded = LaneState.Outcome.loaded(.session(alice, .stored, isUrgent: false), isNews: isNews)
            let effects = words(state.take(loaded, of: name, at: now))
            #expect(effects.contains("signed_in") == isNews)
            #expect(effects.last == "initial_session")
        }
    }
}
