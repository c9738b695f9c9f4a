/// Decides which 32 bytes are accepted as an Ed25519 public key. libcrypto accepts any bytes. Two kinds are dangerous:
/// points of small order, under which one signature can be valid for many messages, and second encodings of a point.
enum Ed25519Point {
    /// False for coordinates not below the field's prime (RFC 8032 section 5.1.3) and for points of small order. Bytes
    /// that do not encode a point are accepted here; no signature verifies under them.
    static func isKey(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == PublicKey.ed25519Length else { return false }
        // The highest bit is the sign of the other coordinate. It does not change the order of the point.
        let coordinate = bytes.dropLast() + [bytes[bytes.count - 1] & 0x7F]
        return isCanonical(coordinate) && !smallOrder.contains(Array(coordinate))
    }

    /// True if the coordinate (little-endian) is below 2^255 - 19.
    private static func isCanonical(_ coordinate: ArraySlice<UInt8>) -> Bool {
        let isHigh = coordinate.last == 0x7F && coordinate.dropFirst().dropLast().allSatisfy { $0 == 0xFF }
        return !isHigh || (coordinate.first ?? 0) < 0xED
    }

    /// The y coordinates of all points whose order divides the cofactor 8. Their orders are 4, 1, 2, 8 and 8.
    private static let smallOrder: [[UInt8]] = [
        [UInt8](repeating: 0, count: 32),
        [1] + [UInt8](repeating: 0, count: 31),
        [0xEC] + [UInt8](repeating: 0xFF, count: 30) + [0x7F],
        [
            0x26, 0xE8, 0x95, 0x8F, 0xC2, 0xB2, 0x27, 0xB0, 0x45, 0xC3, 0xF4, 0x89, 0xF2, 0xEF, 0x98, 0xF0,
            0xD5, 0xDF, 0xAC, 0x05, 0xD3, 0xC6, 0x33, 0x39, 0xB1, 0x38, 0x02, 0x88, 0x6D, 0x53, 0xFC, 0x05,
        ],
        [
            0xC7, 0x17, 0x6A, 0x70, 0x3D, 0x4D, 0xD8, 0x4F, 0xBA, 0x3C, 0x0B, 0x76, 0x0D, 0x10, 0x67, 0x0F,
            0x2A, 0x20, 0x53, 0xFA, 0x2C, 0x39, 0xCC, 0xC6, 0x4E, 0xC7, 0xFD, 0x77, 0x92, 0xAC, 0x03, 0x7A,
        ],
    ]
}
