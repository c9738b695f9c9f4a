internal import BrokerCore
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// What an account has seen of the people who signed in to it: which accounts at providers belonged to whom. It outlives
/// the sessions, so that what was linked while nobody was signed in here is seen at the next sign-in. No token and no
/// address is in it.
struct KnownUsers: Equatable {
    private struct Person: Equatable {
        let subject: String
        let identities: [KnownIdentity]
    }

    /// Who was seen last comes first.
    private var people: [Person] = []
    /// People that an account remembers; the one not seen for longest is forgotten first.
    static let most = 64
    private static let version = 1

    init() {}

    /// What the person had when they were last seen; nil for a stranger.
    func identities(of subject: String) -> [KnownIdentity]? { people.first { $0.subject == subject }?.identities }

    mutating func remember(_ identities: [KnownIdentity], of subject: String) {
        people.removeAll { $0.subject == subject }
        people.insert(Person(subject: subject, identities: identities), at: 0)
        people.removeLast(max(0, people.count - KnownUsers.most))
    }

    // MARK: As text for the vault

    /// Nil for what no version so far has written.
    init?(decoding text: Secret) {
        guard let json = try? JSON(parsing: text.revealedBytes()), json["version"]?.integer == KnownUsers.version
        else {
            return nil
        }
        for member in (json["people"]?.array ?? []).prefix(KnownUsers.most) {
            guard let subject = member["subject"]?.string else { continue }
            let identities = (member["identities"]?.array ?? []).compactMap { identity -> KnownIdentity? in
                guard let id = identity["identity_id"]?.string, let provider = identity["provider"]?.string else {
                    return nil
                }
                return KnownIdentity(identityID: id, provider: provider)
            }
            people.append(Person(subject: subject, identities: identities))
        }
    }

    var text: Secret {
        let people = people.map { person -> JSON in
            [
                "subject": .string(person.subject),
                "identities": .array(
                    person.identities.map { ["identity_id": .string($0.identityID), "provider": .string($0.provider)] }),
            ]
        }
        let document: JSON = ["version": .integer(KnownUsers.version), "people": .array(people)]
        return Secret(bytes: document.serialized())
    }
}
