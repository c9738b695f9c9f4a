import RingbackBase
import SessionVault
import Testing

/// What every vault holds to, whatever it is made of. The durable one is opened anew after every step.
@Suite struct `Every vault` {
    enum Kind: CaseIterable, Sendable {
        case memory, sealed, sealedReopened
    }

    private final class Subject {
        let kind: Kind
        let house = VaultHouse()
        private var current: any Vault

        init(_ kind: Kind) async throws {
            self.kind = kind
            current = kind == .memory ? MemoryVault() : try await house.opened()
        }

        var vault: any Vault {
            get async throws {
                if kind == .sealedReopened { current = try await house.opened() }
                return current
            }
        }
    }

    @Test(arguments: Kind.allCases) func `an empty slot holds nothing`(kind: Kind) async throws {
        let subject = try await Subject(kind)
        #expect(try await subject.vault.load(slot) == nil)
        try await subject.vault.remove(slot)
        try await subject.vault.settle(slot)
        #expect(try await subject.vault.retire(slot) == nil)
        try await subject.vault.discard("nothing")
        #expect(try await subject.vault.retired() == [])
    }

    @Test(arguments: Kind.allCases) func `a slot holds what was stored last`(kind: Kind) async throws {
        let subject = try await Subject(kind)
        for text in ["one", "two", "", String(repeating: "long ", count: 40_000), "three"] {
            try await subject.vault.store(Secret(text), in: slot)
            #expect(try await subject.vault.load(slot) == VaultEntry(text: Secret(text)))
        }
    }

    @Test(arguments: Kind.allCases) func `many slots are read as each of them is`(kind: Kind) async throws {
        let subject = try await Subject(kind)
        try await subject.vault.store(Secret("one"), in: slot)
        try await subject.vault.announce(slot)
        let unusable = VaultSlot(account: "../work", binding: "x")
        let vault = try await subject.vault
        let found = await vault.load([otherSlot, slot, unusable, slot])
        let entry = VaultEntry(text: Secret("one"), isInterrupted: true)
        try #require(found.count == 4)
        #expect(try found[0].get() == nil)
        #expect(try found[1].get() == entry)
        #expect(try found[3].get() == entry)
        // A vault in memory has no file names.
        if kind != .memory { #expect(throws: VaultError.self) { try found[2].get() } }
        try await subject.vault.settle(slot)
    }

    @Test(arguments: Kind.allCases) func `slots do not mix`(kind: Kind) async throws {
        let subject = try await Subject(kind)
        let slots = [
            slot, otherSlot, VaultSlot(account: "work", binding: "another client"),
            VaultSlot(account: "mail", binding: slot.binding), VaultSlot(account: "work", binding: ""),
            VaultSlot(account: "retired-0000000000001", binding: "x"), VaultSlot(account: "a.b_c-d", binding: "x\ny\0"),
            VaultSlot(account: "work", binding: slot.binding, kind: .registration),
            VaultSlot(account: "work", binding: slot.binding, kind: .people),
        ]
        for (index, slot) in slots.enumerated() { try await subject.vault.store(Secret("\(index)"), in: slot) }
        for (index, slot) in slots.enumerated() {
            #expect(try await subject.vault.load(slot)?.text == Secret("\(index)"))
        }
        try await subject.vault.remove(slots[0])
        #expect(try await subject.vault.load(slots[0]) == nil)
        for slot in slots.dropFirst() { #expect(try await subject.vault.load(slot) != nil) }
        #expect(try await subject.vault.retired() == [])
    }

    @Test(arguments: Kind.allCases, VaultSlot.Kind.allCases)
    func `an announcement is told until it is over`(kind: Kind, content: VaultSlot.Kind) async throws {
        let subject = try await Subject(kind)
        let slot = VaultSlot(account: "work", binding: "a client", kind: content)
        try await subject.vault.store(Secret("old"), in: slot)
        try await subject.vault.announce(slot)
        #expect(try await subject.vault.load(slot) == VaultEntry(text: Secret("old"), isInterrupted: true))
        try await subject.vault.announce(slot)
        try await subject.vault.settle(slot)
        #expect(try await subject.vault.load(slot) == VaultEntry(text: Secret("old")))
        try await subject.vault.announce(slot)
        try await subject.vault.store(Secret("new"), in: slot)
        #expect(try await subject.vault.load(slot) == VaultEntry(text: Secret("new")))
    }

    @Test(arguments: Kind.allCases) func `an announcement concerns its slot alone`(kind: Kind) async throws {
        let subject = try await Subject(kind)
        try await subject.vault.store(Secret("mine"), in: slot)
        try await subject.vault.store(Secret("other"), in: otherSlot)
        try await subject.vault.announce(slot)
        #expect(try await subject.vault.load(otherSlot)?.isInterrupted == false)
        try await subject.vault.store(Secret("newer"), in: otherSlot)
        #expect(try await subject.vault.load(slot)?.isInterrupted == true)
    }

    @Test(arguments: Kind.allCases) func `an announcement is over with the session`(kind: Kind) async throws {
        let subject = try await Subject(kind)
        for isRetired in [true, false] {
            try await subject.vault.store(Secret("old"), in: slot)
            try await subject.vault.announce(slot)
            if isRetired {
                _ = try await subject.vault.retire(slot)
            } else {
                try await subject.vault.remove(slot)
            }
            #expect(try await subject.vault.load(slot) == nil)
            try await subject.vault.store(Secret("next"), in: slot)
            #expect(try await subject.vault.load(slot) == VaultEntry(text: Secret("next")))
        }
    }

    @Test(arguments: Kind.allCases) func `a first session can be announced as well`(kind: Kind) async throws {
        let subject = try await Subject(kind)
        try await subject.vault.announce(slot)
        #expect(try await subject.vault.load(slot) == nil)
        try await subject.vault.store(Secret("first"), in: slot)
        #expect(try await subject.vault.load(slot) == VaultEntry(text: Secret("first")))
    }

    @Test(arguments: Kind.allCases) func `what was retired is kept until it is discarded`(kind: Kind) async throws {
        let subject = try await Subject(kind)
        var entries: [RetiredEntry] = []
        for number in 0..<12 {
            let place = number % 2 == 0 ? slot : otherSlot
            try await subject.vault.store(Secret("text \(number)"), in: place)
            let entry = try await subject.vault.retire(place)
            let retired = try #require(entry)
            #expect(retired.slot == place)
            #expect(retired.text == Secret("text \(number)"))
            #expect(try await subject.vault.load(place) == nil)
            entries.append(retired)
        }
        #expect(Set(entries.map(\.id)).count == 12)
        #expect(try await subject.vault.retired() == entries)
        try await subject.vault.discard(entries[3].id)
        try await subject.vault.discard(entries[3].id)
        entries.remove(at: 3)
        #expect(try await subject.vault.retired() == entries)
        for entry in entries { try await subject.vault.discard(entry.id) }
        #expect(try await subject.vault.retired() == [])
    }

    @Test(arguments: Kind.allCases) func `what was replaced is retired, and kept until it is discarded`(kind: Kind)
        async throws
    {
        let subject = try await Subject(kind)
        #expect(try await subject.vault.replace(Secret("one"), in: slot) == nil)
        try await subject.vault.announce(slot)
        let first = try #require(try await subject.vault.replace(Secret("two"), in: slot))
        #expect(first.text == Secret("one") && first.slot == slot)
        #expect(try await subject.vault.load(slot) == VaultEntry(text: Secret("two")))
        try await subject.vault.store(Secret("three"), in: slot)
        let second = try #require(try await subject.vault.replace(Secret("four"), in: slot))
        #expect(try await subject.vault.retired() == [first, second])
        #expect(try await subject.vault.load(slot) == VaultEntry(text: Secret("four")))
        for entry in [first, second] { try await subject.vault.discard(entry.id) }
        #expect(try await subject.vault.retired() == [])
    }

    @Test(arguments: Kind.allCases) func `a text can be kept as retired beside what the slot holds`(kind: Kind)
        async throws
    {
        let subject = try await Subject(kind)
        try await subject.vault.store(Secret("held"), in: slot)
        let first = try await subject.vault.keep(Secret("over"), retiredFrom: slot)
        let second = try await subject.vault.keep(Secret("over too"), retiredFrom: otherSlot)
        #expect(first.text == Secret("over") && first.slot == slot && second.slot == otherSlot)
        #expect(try await subject.vault.retired() == [first, second])
        #expect(try await subject.vault.load(slot) == VaultEntry(text: Secret("held")))
        #expect(try await subject.vault.load(otherSlot) == nil)
        for entry in [first, second] { try await subject.vault.discard(entry.id) }
        #expect(try await subject.vault.retired() == [])
    }

    @Test(arguments: Kind.allCases) func `opening an open vault changes nothing`(kind: Kind) async throws {
        let subject = try await Subject(kind)
        let vault = try await subject.vault
        try await vault.store(Secret("text"), in: slot)
        try await vault.open(passphrase: nil)
        try await vault.open(passphrase: Secret("whatever"))
        #expect(try await vault.load(slot)?.text == Secret("text"))
        #expect(!vault.status.isLocked)
        #expect(vault.status.reason == nil)
        switch vault.status.protection {
        case .memory(nil): #expect(kind == .memory)
        case .keyFile: #expect(kind != .memory)
        default: Issue.record("\(vault.status.protection)")
        }
    }
}
