public import RingbackBase

/// Keeps sessions in memory only, until the process ends.
public actor MemoryVault: Vault {
    private var texts: [VaultSlot: Secret] = [:]
    private var announced: Set<VaultSlot> = []
    private var leaving: [RetiredEntry] = []
    private var number = 0

    public init() {}
    public func open(passphrase: Secret?) {}
    public func close() throws(VaultError) { throw .refused(.inMemory) }

    public func rekey(to choice: KeySourceChoice, passphrase: Secret?) throws(VaultError) {
        throw .refused(.noKeyInMemory)
    }

    public func load(_ slot: VaultSlot) -> VaultEntry? {
        texts[slot].map { VaultEntry(text: $0, isInterrupted: announced.contains(slot)) }
    }

    public func announce(_ slot: VaultSlot) { announced.insert(slot) }

    public func store(_ text: Secret, in slot: VaultSlot) {
        texts[slot] = text
        announced.remove(slot)
    }

    public func settle(_ slot: VaultSlot) { announced.remove(slot) }

    public func remove(_ slot: VaultSlot) {
        texts[slot] = nil
        announced.remove(slot)
    }

    public func retire(_ slot: VaultSlot) -> RetiredEntry? {
        guard let text = texts.removeValue(forKey: slot) else { return nil }
        announced.remove(slot)
        return keep(text, retiredFrom: slot)
    }

    public func replace(_ text: Secret, in slot: VaultSlot) -> RetiredEntry? {
        let entry = retire(slot)
        store(text, in: slot)
        return entry
    }

    public func keep(_ text: Secret, retiredFrom slot: VaultSlot) -> RetiredEntry {
        number += 1
        let entry = RetiredEntry(id: "\(number)", slot: slot, text: text)
        leaving.append(entry)
        return entry
    }

    public func retired() -> [RetiredEntry] { leaving }

    public func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) -> [VaultSlot] {
        texts.keys.filter { $0.kind == kind && !known.contains($0) }
    }

    public func discard(_ id: String) { leaving.removeAll { $0.id == id } }

    public nonisolated var status: VaultStatus {
        VaultStatus(kind: .memory, isLocked: false, keySource: .memory, protection: .memory(reason: nil))
    }
}
