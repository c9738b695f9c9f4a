internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// Addresses and numbers that wait to take the place of others: a flow of the person who is signed in, which the codes
/// or the links of the messages end. What is asked for already stands in the server's user; only what it shows as
/// waiting is waited for.
struct ContactChange: Sendable, Equatable {
    /// Nil where none is awaited, or none any more.
    var email: EmailAddress?
    var phone: PhoneNumber?
    /// The ones that are to be replaced, where there are any: an address may have to agree to it.
    var currentEmail: EmailAddress?
    var currentPhone: PhoneNumber?
    var channel: MessageChannel?
    /// Addresses of the e-mail change that have been confirmed while another is awaited.
    var confirmed: Set<EmailAddress> = []

    var isDone: Bool { email == nil && phone == nil }

    /// Somewhere that a code was sent to, or may have been.
    struct Place: Sendable, Equatable {
        let purpose: SupabaseProject.Purpose
        let contact: Contact
    }

    /// Where codes may come from, the likeliest first: whether the present address is asked too is the project's rule,
    /// which no answer tells.
    var places: [Place] {
        let addresses = email.map { [$0, currentEmail].compactMap { $0 } } ?? []
        let waiting = addresses.filter { !confirmed.contains($0) }
        return waiting.map { Place(purpose: .emailChange, contact: .email($0)) }
            + (phone.map { [Place(purpose: .phoneChange, contact: .phone($0))] } ?? [])
    }

    /// One of the two changes is through.
    mutating func finish(_ purpose: SupabaseProject.Purpose) {
        if purpose == .phoneChange {
            phone = nil
        } else {
            email = nil
            confirmed = []
        }
    }

    /// What the answer to a change of the user leaves to be confirmed: what it shows as waiting.
    init(of changes: UserChanges, in user: SupabaseUser) {
        if let email = changes.email, user.newEmail?.lowercased() == email.text { self.email = email }
        if let phone = changes.phone, user.newPhone == phone.text { self.phone = phone }
        currentEmail = user.email.flatMap { try? EmailAddress(parsing: $0) }
        currentPhone = user.phone.flatMap { try? PhoneNumber(parsing: $0) }
        channel = changes.channel
    }

    /// The changes as the server was asked for them: asked again, it sends its messages again.
    var asked: UserChanges {
        var changes = UserChanges()
        changes.email = email
        changes.phone = phone
        changes.channel = phone == nil ? nil : channel
        return changes
    }
}

extension FlowStart {
    /// A change of the person's address or number. The link of the mail leads back here, where its code is worth
    /// something.
    func change() async throws(BrokerError) -> Beginning {
        let changes = try SupabaseProvider.building { () throws(FieldError) in
            try FlowStart.required(fields.changes, "data")
        }
        let flow = try await redirected(isNeeded: changes.email != nil, message: nil, purpose: .change)
        do throws(BrokerError) {
            let user = try await LaneRequests(sessions: context.sessions).put(
                changes, of: account.name, link: flow.link)
            let awaited = ContactChange(of: changes, in: user)
            guard awaited.isDone else { return made(flow.awaiting(awaited)) }
            await close(flow)
            return .done
        } catch {
            await close(flow)
            throw error
        }
    }
}

extension SupabaseFlow {
    /// The same with what the messages are to confirm. Where no mail was sent, no callback is awaited.
    func awaiting(_ change: ContactChange) -> SupabaseFlow {
        var flow = self
        flow.message = .change(change)
        return flow
    }
}

extension CodeOrigin {
    init(_ place: ContactChange.Place) {
        self.init(kind: place.purpose.rawValue)
        switch place.contact {
        case .email(let address): email = address.text
        case .phone(let number): phone = number.text
        }
    }

    /// The field that was given first; nil for none.
    var field: String? {
        if email != nil { return "email" }
        if phone != nil { return "phone" }
        return kind == nil ? nil : "type"
    }

    /// The places that fit it. Throws for the field that fits none.
    func choose(among places: [ContactChange.Place]) throws(FieldError) -> [ContactChange.Place] {
        var chosen = places
        if let kind { chosen = chosen.filter { $0.purpose.rawValue == kind } }
        if email != nil || phone != nil {
            let contact = try Contact(email: email, phone: phone)
            chosen = chosen.filter { $0.contact == contact }
        }
        guard !chosen.isEmpty else {
            throw FieldError(field: field ?? "code", reason: "no code of this flow is awaited from there")
        }
        return chosen
    }
}
