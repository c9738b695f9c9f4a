internal import Cryptography
internal import Secrets
internal import SessionVault

/// Seals what rests in the database. A content is bound to its owner, its row and its version, so a row in another's
/// place, an older one under a newer number and a cut one do not open.
struct RowSealing: Sendable {
    let dataKey: Secret
    let owner: String

    /// The name of a slot in the database.
    func key(of slot: VaultSlot) throws(VaultError) -> RowKey {
        let names =
            switch slot.kind {
            case .session: ["session", slot.account, slot.binding]
            case .registration: ["registration", slot.account, slot.binding]
            // One for all hosts, of which each has its record bound to its own role.
            case .hostsKey, .people, .provider: [slot.account]
            }
        let parts = names.map { "\($0.utf8.count):\($0)" }
        do throws(CryptographyError) {
            let key = try KeyDerivation.derive(
                from: dataKey, purpose: "ringback: row 1 " + parts.joined(), length: 32)
            return RowKey(bytes: key.revealedBytes())
        } catch {
            throw .refused(.cryptography)
        }
    }

    func seal(_ content: RowContent, as key: RowKey, version: Int64) throws(VaultError) -> [UInt8] {
        do throws(CryptographyError) {
            return try SealedBox.seal(content.encoded(), with: dataKey, context: context(key, version))
        } catch {
            throw .refused(.cryptography)
        }
    }

    /// Nil if it was sealed with another key, or for another place or version, or was changed.
    func open(_ sealed: [UInt8], as key: RowKey, version: Int64) throws(VaultError) -> RowContent? {
        do throws(CryptographyError) {
            guard let text = try SealedBox.open(sealed, with: dataKey, context: context(key, version)) else {
                return nil
            }
            return RowContent.read(text)?.content
        } catch {
            throw .refused(.cryptography)
        }
    }

    private func context(_ key: RowKey, _ version: Int64) -> [UInt8] {
        let owner = Array(owner.utf8)
        let numbers = [UInt64(owner.count), UInt64(bitPattern: version)].map { number in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt64($0)) }
        }
        return Array("ringback: row content 1".utf8) + numbers[0] + owner + key.bytes + numbers[1]
    }
}
