internal import Glibc
internal import HTTPMessages

/// The last few request heads that were answered at once. A program that asks for the same token again sends the same
/// bytes; then nothing is parsed, and no memory is allocated.
///
/// Only a head that can hold no secret is kept: GET without a query and without a body, and with no fields but the four
/// below. It is kept only after ``keep()`` says that it was answered by the immediate handler.
final class HeadCache {
    private struct Entry {
        let bytes: [UInt8]
        let head: RequestHead
    }

    /// As many as a machine has accounts that are asked for all the time. A search compares the bytes of each.
    private static let most = 16
    private static let longest = 512
    private static let harmless = ["Host", "Connection", "Accept", "User-Agent"]

    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var entries: [Entry] = []
    /// The place of the next new entry.
    private var turn = 0
    /// The last head that was parsed, if it may be kept.
    private var candidate: [UInt8] = []
    private var candidateHead: RequestHead?

    init() {
        candidate.reserveCapacity(HeadCache.longest)
    }

    /// The head that the bytes begin with, and its length, if it is known.
    func find(_ bytes: Span<UInt8>) -> (head: RequestHead, length: Int)? {
        candidateHead = nil
        for index in entries.indices where HeadCache.begin(bytes, with: entries[index].bytes) {
            return (entries[index].head, entries[index].bytes.count)
        }
        return nil
    }

    /// The head ends with its first empty line, so bytes that begin with a head that is known have no other.
    private static func begin(_ bytes: Span<UInt8>, with head: [UInt8]) -> Bool {
        guard bytes.count >= head.count else { return false }
        return unsafe bytes.withUnsafeBytes { bytes in
            unsafe head.withUnsafeBytes { head in
                guard let left = bytes.baseAddress, let right = head.baseAddress else { return false }
                return unsafe memcmp(left, right, head.count) == 0
            }
        }
    }

    /// Notes a head that was parsed from the bytes.
    func propose(_ head: RequestHead, _ bytes: Span<UInt8>) {
        candidateHead = nil
        guard head.method == "GET", head.query == nil, head.contentLength == 0, bytes.count <= HeadCache.longest,
            head.fields.lines.allSatisfy({ field in HeadCache.harmless.contains { HTTPFields.isSame($0, field.name) } })
        else { return }
        candidate.removeAll(keepingCapacity: true)
        for index in 0..<bytes.count { candidate.append(bytes[index]) }
        candidateHead = head
    }

    /// Keeps the head that was proposed last. Does nothing if the last ``find(_:)`` found one: that one is kept already.
    func keep() {
        guard let head = candidateHead else { return }
        candidateHead = nil
        // A copy of its own: the candidate's memory is used again.
        let entry = Entry(bytes: candidate.map { $0 }, head: head)
        if entries.count < HeadCache.most {
            entries.append(entry)
        } else {
            entries[turn] = entry
            turn = (turn + 1) % HeadCache.most
        }
    }
}
