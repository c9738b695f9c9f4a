@testable import BrokerCore

/// What follows from an outcome, in a word each.
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

/// The presence in a word, and `closing` for each sign-out in progress.
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
    case .changeBegan: "change began"
    case .changeEnded: "change ended"
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
