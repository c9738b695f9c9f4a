public import BrokerCore

/// A fact with a sentence. The conformances are in this folder, one file per idea: only here are facts put into words.
protocol Sentence {
    /// For the user: one sentence or more, or the end of one that begins with a field's name.
    var sentence: String { get }
}

/// A sentence of a part above the broker that has no facts for it: the socket API's own, the configuration's, or the
/// helper's. The broker and the kinds of account cannot make one.
public struct StatedReason: KindReason, Equatable, Sentence {
    public let sentence: String
}

extension Reason {
    public static func stated(_ sentence: String) -> Reason { .kind(KindFact(StatedReason(sentence: sentence))) }
}

extension Reason: Sentence {
    /// For the user: one sentence or more, or the end of one that begins with a field's name.
    public var sentence: String {
        switch self {
        case .flow(let reason): reason.sentence
        case .request(let reason): reason.sentence
        case .session(let reason): reason.sentence
        case .account(let reason): reason.sentence
        case .provider(let reason): reason.sentence
        case .exposedSocket(let reason): reason.sentence
        case .finding(let reason): reason.sentence
        case .kind(let fact): (fact.reason as? any Sentence)?.sentence ?? ""
        case .both(let first, let second): "\(first.sentence) \(second.sentence)"
        case .vault(let error): error.sentence
        }
    }

    /// The same as the end of a sentence, with its full stop. The sentences of a further reason follow it.
    var asSentenceEnd: String {
        if case .both(let first, let second) = self { "\(first.sentence). \(second.sentence)" } else { "\(sentence)." }
    }
}
