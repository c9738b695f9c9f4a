import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

private let name = House.name
private let now = laneNow
private let alice = laneSession("alice")
private let aliceInMemory = laneSession("alice", .memory)
private let bob = laneSession("bob")
private let configured = laneSession("bob", .configuration)
private let down = BrokerError.provider(.unavailable(status: 503, retryAfter: 600))
private let full = BrokerError.vaultFailed(.vault(.unwritable(.diskFull)))

@Suite struct `The state of an account's lane` {
    /// What leads to each presence, as it does in a daemon.
    private static let paths: [[LaneState.Outcome]] = [
        [],
        [.loaded(.failed(full), isAfterReload: false)],
        [.loaded(.absent(.signedOut), isAfterReload: false)],
        [held(), .dead(code: "x")],
        [.loaded(.absent(.unreadable(full)), isAfterReload: false)],
        [.loaded(.untouchable(full), isAfterReload: false)],
        [held()],
        [held(isUnsaved: true)],
        [held(aliceInMemory)],
        [held(isUrgent: true)],
        [held(isUnsaved: true, isUrgent: true)],
        [held(aliceInMemory, isUrgent: true)],
        [held(configured)],
        [held(configured, isUrgent: true)],
    ]
    /// Each presence with no, one and two sign-outs in progress, each with and without a problem, a back-off, a refresh
    /// and another change that is running.
    private static let states: [LaneState] = paths.flatMap { path in
        (0...2).flatMap { signOuts in
            [
                [], [.noticed(down, nil)], [.failed(down, isOfRequest: false)], [.refreshBegan(.own, Promise())],
                [.changing(true)],
            ]
            .map { (more: [LaneState.Outcome]) in
                var state = LaneState()
                for outcome in Array(repeating: .signOutBegan, count: signOuts) + path + more {
                    _ = state.take(outcome, of: name, at: now)
                }
                return state
            }
        }
    }
    private static let outcomes: [LaneState.Outcome] = [
        .loaded(.session(HeldSession(bob)), isAfterReload: false),
        .loaded(.session(HeldSession(bob)), isAfterReload: true),
        .loaded(.absent(.signedOut), isAfterReload: false),
        .loaded(.absent(.ended(code: "x")), isAfterReload: false),
        .loaded(.absent(.unreadable(full)), isAfterReload: false),
        .loaded(.untouchable(full), isAfterReload: false),
        .loaded(.failed(down), isAfterReload: false),
        .changedElsewhere(.session(HeldSession(bob))),
        .changedElsewhere(.absent(.signedOut)),
        .changedElsewhere(.absent(.ended(code: "x"))),
        .changedElsewhere(.failed(down)),
        .opened(HeldSession(bob), .signedIn, nil),
        .signInBegan,
        .refreshBegan(.own, Promise()),
        .rotated(bob, full),
        .renewed(bob, nil),
        .changed(bob, .userUpdated, nil),
        .failed(down, isOfRequest: false),
        .failed(down, isOfRequest: true),
        .refreshEnded(.own, nil),
        .changing(true),
        .changing(false),
        .becameUrgent,
        .dead(code: "x"),
        .saved,
        .notSaved,
        .signOutBegan,
        .closed(leaving: nil),
        .closed(leaving: configured),
        .signOutEnded,
        .dropped,
        .locked,
        .replaced,
        .noticed(full, .signInFailed),
        .networkReturned,
        .configurationFixed,
        .reloaded(isChanged: true),
        .settingFixed(UnusableSetting(.any, setting: "client_secret_file")),
    ]

    /// The presence that is left, where an outcome changes it. How many sign-outs are in progress has no part in it.
    private static let table: [String: [String: String]] = [
        "loading": loading,
        "unread": loading.merging(["locked": "loading", "replaced": "loading"]) { $1 },
        "absent": changesElsewhere.merging(["opened": "bob in vault", "locked": "loading", "replaced": "loading"]) {
            $1
        },
        "ended": changesOfAbsent,
        "unreadable": changesOfAbsent,
        "untouchable": changesElsewhere.merging(["locked": "loading", "replaced": "loading"]) { $1 },
        "alice in vault": transitions("alice in vault", changesElsewhere),
        "alice in vault unsaved": transitions(
            "alice in vault unsaved", changesElsewhere.merging(["saved": "alice in vault"]) { $1 }),
        "alice in memory": transitions("alice in memory", ["dropped": "absent"]),
        "alice in vault urgent": transitions("alice in vault urgent", changesElsewhere),
        "alice in vault unsaved urgent": transitions(
            "alice in vault unsaved urgent", changesElsewhere.merging(["saved": "alice in vault urgent"]) { $1 }),
        "alice in memory urgent": transitions("alice in memory urgent", ["dropped": "absent"]),
        "bob in configuration": transitions("bob in configuration", ["dropped": "absent"]),
        "bob in configuration urgent": transitions("bob in configuration urgent", ["dropped": "absent"]),
    ]
    private static let loading = [
        "loaded": "bob in vault", "loaded again": "bob in vault", "loaded nothing": "absent",
        "loaded an ended session": "ended", "loaded an unreadable record": "unreadable",
        "loaded an untouchable record": "untouchable", "not loaded": "unread",
    ]

    private static func transitions(_ word: String, _ more: [String: String] = [:]) -> [String: String] {
        let urgent = word.hasSuffix(" urgent") ? " urgent" : ""
        return [
            "opened": "bob in vault", "rotated": "bob in vault unsaved" + urgent, "renewed": "bob in vault",
            "changed": "bob in vault" + urgent, "became urgent": urgent.isEmpty ? word + " urgent" : word,
            "dead": "ended",
            "closed": "absent", "tokens dropped": "bob in configuration", "locked": "loading", "replaced": "loading",
        ].merging(more) { $1 }
    }

    @Test func `every outcome in every state leaves what the table says`() {
        #expect(Set(Self.states.map(word)).count == Self.paths.count * 3)
        #expect(Set(Self.outcomes.map(word)).count == Self.outcomes.count)
        for start in Self.states {
            let count = start.signOutsInProgress
            let presence = String(word(start).dropLast(closing(count).count))
            for outcome in Self.outcomes {
                var state = start
                _ = state.take(outcome, of: name, at: now)
                let what = word(outcome)
                let left = what == "sign-out began" ? count + 1 : what == "sign-out ended" ? max(count - 1, 0) : count
                let expected = (Self.table[presence]?[what] ?? presence) + closing(left)
                #expect(word(state) == expected, "\(what) while \(word(start))")
            }
        }
    }

    @Test func `a reload clears a problem for which nothing is retried, and changes nothing else`() {
        for problem: BrokerError in [
            down, full, .vaultLocked(.vault(.locked(.locked))), .sessionRanOut(name, advice: nil),
        ] {
            for backsOff in [false, true] {
                var state = reached(held())
                if backsOff { _ = state.take(.failed(down, isOfRequest: false), of: name, at: now) }
                _ = state.take(.noticed(problem, nil), of: name, at: now)
                #expect(words(state.take(.reloaded(isChanged: true), of: name, at: now)).isEmpty)
                #expect(state.problem == (problem == down && !backsOff ? nil : problem))
                #expect(word(state) == "alice in vault")
                #expect((state.renewal.backoff.error != nil) == backsOff)
            }
        }
    }

    @Test func `a setting that can be used again clears its own problem, and the wait of the refresh that it failed`() {
        let setting = UnusableSetting(.any, setting: "client_secret_file")
        for (problem, isCleared) in [(BrokerError.unusableSetting(setting), true), (.accessDenied(name), false)] {
            var state = reached(held())
            _ = state.take(.failed(problem, isOfRequest: false), of: name, at: now)
            _ = state.take(.settingFixed(setting), of: name, at: now)
            #expect((state.problem == nil) == isCleared)
            #expect((state.renewal.backoff.refusal(at: now) == nil) == isCleared)
            #expect(word(state) == "alice in vault")
        }
    }

    @Test func `a reload without a change of the account keeps what the provider refused or a setting prevents`() {
        for isChanged in [false, true] {
            for problem: BrokerError in [
                .provider(.refused(code: "invalid_client", message: nil)), .misconfigured(.any),
                .accessDenied(name),
            ] {
                var state = reached(held())
                _ = state.take(.noticed(problem, nil), of: name, at: now)
                _ = state.take(.reloaded(isChanged: isChanged), of: name, at: now)
                #expect(state.problem == (isChanged || problem == .accessDenied(name) ? nil : problem))
            }
        }
    }

    @Test func `after every outcome in every state readers see a session only if it is held and no sign-out waits`() {
        for start in Self.states {
            for outcome in Self.outcomes {
                var state = start
                let what = word(outcome)
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
            for outcome in Self.outcomes {
                var state = start
                let what = word(outcome)
                let effects = words(state.take(outcome, of: name, at: now))
                let isOver = !start.isLoaded && (state.isLoaded || what == "not loaded")
                #expect(!isOver || effects.contains("wake"), "\(what) while \(word(start))")
            }
        }
    }

    @Test func `a refresh that ends after the sign-out brings nothing back`() {
        var state = reached(held(), .signOutBegan, .closed(leaving: nil), .signOutEnded)
        for outcome: LaneState.Outcome in [.rotated(bob, nil), .renewed(bob, nil), .saved] {
            #expect(words(state.take(outcome, of: name, at: now)).isEmpty)
        }
        #expect(state.session == nil)
    }

    @Test func `of two sign-outs the first ends the session and the second changes nothing`() {
        var state = reached(held(), .signOutBegan, .signOutBegan)
        #expect(words(state.take(.closed(leaving: nil), of: name, at: now)).contains("signed_out"))
        _ = state.take(.signOutEnded, of: name, at: now)
        #expect(words(state.take(.closed(leaving: nil), of: name, at: now)).isEmpty)
        #expect(state.signOutsInProgress == 1)
    }

    @Test func `what is known of a session's refreshes ends with the session`() {
        var ending = alice
        ending.end = Deadline(at: WallInstant(seconds: 10), boot: now)
        let path: [LaneState.Outcome] = [held(ending), .refreshBegan(.own, Promise()), .refreshEnded(.own, nil)]
        var start = LaneState()
        for outcome in path { _ = start.take(outcome, of: name, at: now) }
        #expect(start.held?.hasTriedEnd == true && start.held?.lastRefresh?.endedAt == now)
        var moved = ending
        moved.end = Deadline(at: WallInstant(seconds: 20), boot: now)
        for (outcome, keepsEnd) in [(LaneState.Outcome.renewed(ending, nil), true), (.renewed(moved, nil), false)] {
            var state = start
            _ = state.take(outcome, of: name, at: now)
            #expect(state.held?.hasTriedEnd == keepsEnd)
            #expect(state.held?.lastRefresh != nil)
        }
        for outcome in [LaneState.Outcome.dead(code: nil), .closed(leaving: nil), .locked, .replaced] {
            var state = start
            _ = state.take(outcome, of: name, at: now)
            _ = state.take(.refreshEnded(.own, .cancelled), of: name, at: now)
            for next in [held(ending), .opened(HeldSession(ending), .signedIn, nil)] {
                _ = state.take(next, of: name, at: now)
            }
            #expect(state.held?.hasTriedEnd == false && state.held?.lastRefresh == nil)
        }
    }

    @Test func `a session that is never written is never unsaved`() {
        for session in [aliceInMemory, configured] { #expect(!HeldSession(session, isUnsaved: true).isUnsaved) }
        #expect(HeldSession(alice, isUnsaved: true).isUnsaved)
    }

    @Test func `a provider's wait outlives the session, a lock and an unlock`() {
        let failed = LaneState.Outcome.failed(down, isOfRequest: false)
        for state in [
            reached(held(), failed, .locked, held()), reached(held(), failed, .dead(code: nil)),
            reached(held(), failed, .closed(leaving: nil)),
            reached(held(), failed, .closed(leaving: configured)),
        ] {
            let refusal = state.renewal.backoff.refusalByProvider(at: now + .seconds(300))
            #expect(refusal == .provider(.unavailable(status: 503, retryAfter: 300)))
        }
        let renewed = reached(held(), failed, .renewed(bob, nil))
        #expect(renewed.renewal.backoff.error == nil)
    }

    @Test func `a failure is shown until the next sign-in, sign-out or refresh begins`() {
        for next: LaneState.Outcome in [.signInBegan, .signOutBegan, .refreshBegan(.own, Promise())] {
            var state = reached(held(), .failed(down, isOfRequest: false))
            #expect(state.error(of: name) == down)
            _ = state.take(next, of: name, at: now)
            #expect(state.error(of: name) == nil)
        }
        #expect(reached(held(), .dead(code: "x")).error(of: name) == .sessionExpired(name, word: "x"))
        #expect(reached(.loaded(.untouchable(full), isAfterReload: false), .signInBegan).error(of: name) == full)
    }

    @Test func `a session that comes back with a reload is told as a sign-in, one that is loaded at start is not`() {
        for isAfterReload in [true, false] {
            var state = LaneState()
            let loaded = LaneState.Outcome.loaded(.session(HeldSession(alice)), isAfterReload: isAfterReload)
            let effects = words(state.take(loaded, of: name, at: now))
            #expect(effects.contains("signed_in") == isAfterReload)
            #expect(effects.last == "initial_session")
        }
    }
}

let laneNow = BootInstant(milliseconds: 1_000_000)

func laneSession(_ subject: String, _ keeping: Session.Keeping = .vault) -> Session {
    var session = Session(
        refreshToken: Secret("refresh of \(subject)"), issuer: "https://id.example",
        tokenEndpointOrigin: "https://id.example", signedInAt: WallInstant(seconds: 5))
    session.subject = subject
    session.rotation = .rotates
    session.tokens[.own] = AccessToken(value: Secret("access of \(subject)"), type: "Bearer", scope: nil)
    session.keeping = keeping
    return session
}

func reached(_ outcomes: LaneState.Outcome...) -> LaneState {
    var state = LaneState()
    for outcome in outcomes { _ = state.take(outcome, of: House.name, at: laneNow) }
    return state
}

func held(_ session: Session = laneSession("alice"), isUnsaved: Bool = false, isUrgent: Bool = false)
    -> LaneState.Outcome
{
    .loaded(.session(HeldSession(session, isUnsaved: isUnsaved, isUrgent: isUrgent)), isAfterReload: false)
}

/// What another host did is taken up, unless the session is not in the vault.
let changesElsewhere = [
    "changed elsewhere": "bob in vault", "signed out elsewhere": "absent", "ended elsewhere": "ended",
]

/// What becomes of a lane whose session has ended or is not readable.
let changesOfAbsent = changesElsewhere.merging([
    "opened": "bob in vault", "sign-in began": "absent", "sign-out began": "absent", "locked": "loading",
    "replaced": "loading",
]) { $1 }

func words(_ effects: [LaneState.Effect]) -> [String] {
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

func word(_ state: LaneState) -> String {
    let presence =
        switch state.presence {
        case .loading(nil): "loading"
        case .loading: "unread"
        case .absent(.signedOut): "absent"
        case .absent(.ended): "ended"
        case .absent(.unreadable): "unreadable"
        case .untouchable: "untouchable"
        case .held(let held):
            "\(held.session.subject ?? "") in \(held.session.keeping)"
                + "\(held.isUnsaved ? " unsaved" : "")\(held.isUrgent ? " urgent" : "")"
        }
    return presence + closing(state.signOutsInProgress)
}

func closing(_ count: Int) -> String { String(repeating: ", closing", count: count) }

/// An outcome in a word. The compiler names this switch when an outcome is added: it belongs into the list below too.
func word(_ outcome: LaneState.Outcome) -> String {
    switch outcome {
    case .loaded(.session, false): "loaded"
    case .loaded(.session, true): "loaded again"
    case .loaded(.absent(.signedOut), _): "loaded nothing"
    case .loaded(.absent(.ended), _): "loaded an ended session"
    case .loaded(.absent(.unreadable), _): "loaded an unreadable record"
    case .loaded(.untouchable, _): "loaded an untouchable record"
    case .loaded(.failed, _): "not loaded"
    case .changedElsewhere(.session): "changed elsewhere"
    case .changedElsewhere(.absent(.ended)): "ended elsewhere"
    case .changedElsewhere(.absent): "signed out elsewhere"
    case .changedElsewhere: "unreadable elsewhere"
    case .opened: "opened"
    case .signInBegan: "sign-in began"
    case .refreshBegan: "refresh began"
    case .rotated: "rotated"
    case .renewed: "renewed"
    case .changed: "changed"
    case .failed(_, false): "failed"
    case .failed(_, true): "request failed"
    case .refreshEnded: "refresh ended"
    case .changing(let isRunning): isRunning ? "change began" : "change ended"
    case .becameUrgent: "became urgent"
    case .dead: "dead"
    case .saved: "saved"
    case .notSaved: "not saved"
    case .signOutBegan: "sign-out began"
    case .closed(nil): "closed"
    case .closed: "tokens dropped"
    case .signOutEnded: "sign-out ended"
    case .dropped: "dropped"
    case .locked: "locked"
    case .replaced: "replaced"
    case .noticed: "noticed"
    case .networkReturned: "network returned"
    case .configurationFixed: "mended"
    case .reloaded: "reloaded"
    case .settingFixed: "setting mended"
    }
}
