internal import Glibc
internal import HTTPMessages

/// The last few request heads to which the immediate handler responded. A program that requests the same token again
/// sends the same bytes. The head is then not parsed again, and no memory is allocated.
///
/// Only a head that cannot contain a secret is kept: GET without a query or a body, and only with the fields below. It is kept only when ``keep()`` is called, after the immediate handler has responded.
final class HeadCache {
    private struct Entry {
        let bytes: [UInt8]
        let head: RequestHead
    }

    /// The maximum number of entries: about as many as a machine has accounts in constant use. A search compares the
    /// bytes with each entry.
    private static let most = 16
    private static let longest = 512
    private static let harmless = ["Host", "Connection", "Accept", "Accept-Encoding", "User-Agent"]

    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var entries: [Entry] = []
    /// The index of the entry that is replaced next.
    private var turn = 0
    /// The last head that was parsed, if it may be kept.
    private var candidate: [UInt8] = []
    private var candidateHead: RequestHead?

    init() {
        candidate.reserveCapacity(HeadCache.longest)
    }

    /// The kept head with which the bytes begin, and its length; nil if there is none.
    func find(_ bytes: Span<UInt8>) -> (head: RequestHead, length: Int)? {
        candidateHead = nil
        for index in entries.indices where HeadCache.begin(bytes, with: entries[index].bytes) {
            return (entries[index].head, entries[index].bytes.count)
        }
        return nil
    }

    /// True if the bytes begin with the head. A head ends at its first empty line, so such bytes cannot begin with
    /// another head.
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

    /// The immediate handler did not respond to the head that was proposed last.
    func forget() { candidateHead = nil }

    /// Keeps the head that was proposed last. Does nothing if the last ``find(_:)`` found a head, because that head is
    /// already kept.
    func keep() {
        guard let head = candidateHead else { return }
        candidateHead = nil
        // Copied, because the candidate's memory is used again.
        let entry = Entry(bytes: candidate.map { $0 }, head: head)
        if entries.count < HeadCache.most {
            entries.append(entry)
        } else {
            entries[turn] = entry
            turn = (turn + 1) % HeadCache.most
        }
    }
}
