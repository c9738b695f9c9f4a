internal import BrokerCore
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// The users who have signed in to an account, with their linked identities. The record is kept after a session ends,
/// so that the next sign-in shows which identities were linked meanwhile. It has no tokens and no addresses.
struct KnownUsers: Equatable {
    private struct KnownUser: Equatable {
        let subject: String
        let identities: [KnownIdentity]
    }

    /// The user who was seen last comes first.
    private var people: [KnownUser] = []
    /// The maximum number of users per account. The user who was seen longest ago is removed first.
    static let most = 64
    private static let version = 1

    init() {}

    /// The user's identities when last seen; nil for an unknown user.
    func identities(of subject: String) -> [KnownIdentity]? { people.first { $0.subject == subject }?.identities }

    mutating func remember(_ identities: [KnownIdentity], of subject: String) {
        people.removeAll { $0.subject == subject }
        people.insert(KnownUser(subject: subject, identities: identities), at: 0)
        people.removeLast(max(0, people.count - KnownUsers.most))
    }

    // MARK: As text for the vault

    /// Nil for text of an unknown version.
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
            people.append(KnownUser(subject: subject, identities: identities))
        }
    }

    var text: Secret {
        let people = people.map { user -> JSON in
            [
                "subject": .string(user.subject),
                "identities": .array(
                    user.identities.map { ["identity_id": .string($0.identityID), "provider": .string($0.provider)] }),
            ]
        }
        let document: JSON = ["version": .integer(KnownUsers.version), "people": .array(people)]
        return Secret(bytes: document.serialized())
    }
}
