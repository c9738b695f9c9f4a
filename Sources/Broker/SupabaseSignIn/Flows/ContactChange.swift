internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

/// A change of the signed-in user's e-mail address or phone number that is not confirmed yet. The codes or links of the
/// messages confirm it. A value is awaited only if the server's user object shows it as pending.
struct ContactChange: Sendable, Equatable {
    /// The new address; nil if no confirmation of an address is awaited.
    var email: EmailAddress?
    var phone: PhoneNumber?
    /// The current address. It may have to confirm too.
    var currentEmail: EmailAddress?
    var currentPhone: PhoneNumber?
    var channel: MessageChannel?
    /// Addresses that have confirmed the e-mail change while the other one is awaited.
    var confirmed: Set<EmailAddress> = []

    var isDone: Bool { email == nil && phone == nil }

    struct Place: Sendable, Equatable {
        let purpose: MessagePurpose
        let contact: Contact
    }

    /// The addresses and the number to which codes may have been sent, the most probable first. A setting of the
    /// project decides whether the current address must confirm too, and no response contains that setting.
    var places: [Place] {
        let addresses = email.map { [$0, currentEmail].compactMap { $0 } } ?? []
        let waiting = addresses.filter { !confirmed.contains($0) }
        return waiting.map { Place(purpose: .emailChange, contact: .email($0)) }
            + (phone.map { [Place(purpose: .phoneChange, contact: .phone($0))] } ?? [])
    }

    mutating func finish(_ purpose: MessagePurpose) {
        if purpose == .phoneChange {
            phone = nil
        } else {
            email = nil
            confirmed = []
        }
    }

    /// The part of a change that the response's user object shows as pending.
    init(of changes: UserChanges, in user: SupabaseUser) {
        if let email = changes.email, user.newEmail?.lowercased() == email.text { self.email = email }
        if let phone = changes.phone, user.newPhone == phone.text { self.phone = phone }
        currentEmail = user.email.flatMap { try? EmailAddress(parsing: $0) }
        currentPhone = user.phone.flatMap { try? PhoneNumber(parsing: $0) }
        channel = changes.channel
    }

    var asked: UserChanges {
        var changes = UserChanges()
        changes.email = email
        changes.phone = phone
        changes.channel = phone == nil ? nil : channel
        return changes
    }
}

extension FlowStart {
    /// A change of the user's address or number. Only this flow's verifier redeems the code of the mail's link.
    func change() async throws(BrokerError) -> Beginning {
        let changes = try SupabaseProvider.building(try FlowStart.required(fields.changes, "data"))
        let flow = try await redirected(isNeeded: changes.email != nil, message: nil, purpose: .change)
        do throws(BrokerError) {
            let user = try await context.requests(of: account.name).put(changes, link: flow.link)
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

    /// The name of the first field that has a value; nil if none has.
    var field: String? {
        if email != nil { return "email" }
        if phone != nil { return "phone" }
        return kind == nil ? nil : "type"
    }

    /// The places that match the typed address or number. Throws an error for the field if none matches.
    func choose(among places: [ContactChange.Place]) throws(FieldError) -> [ContactChange.Place] {
        var chosen = places
        if let kind { chosen = chosen.filter { $0.purpose.rawValue == kind } }
        if email != nil || phone != nil {
            let contact = try Contact(email: email, phone: phone)
            chosen = chosen.filter { $0.contact == contact }
        }
        guard !chosen.isEmpty else { throw FieldError.notAwaited(field ?? "code") }
        return chosen
    }
}
