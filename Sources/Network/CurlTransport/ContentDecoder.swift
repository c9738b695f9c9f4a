internal import CCurl
internal import RingbackBase

/// Decodes a body that comes in pieces. A server may compress any response, since no request has Accept-Encoding (RFC
/// 9110 section 12.5.3). libcurl would lose the body if a coding is announced that the body does not have, and a lost
/// response to a refresh ends a session. So libcurl passes on the bytes as they came. Attack: a small body that decodes
/// to a huge one. A piece is decoded only when there is room for it.
struct ContentDecoder {
    /// In the order in which they are undone.
    private let stages: [DecoderStage]
    /// The most codings that are undone, as in libcurl.
    private static let maxCodings = 5
    /// The bytes that one coding gives to the next at a time.
    private static let piece = 16 << 10

    /// Nil if no coding is stated, or one that cannot be decoded: the body is then passed on as it came.
    init?(_ fields: HTTPFields) {
        guard let codings = ContentDecoder.codings(in: fields), !codings.isEmpty else { return nil }
        self.init(codings)
    }

    private init(_ codings: [DecoderStage.Coding]) { stages = codings.reversed().map(DecoderStage.init) }

    /// In the order in which they were applied; nil if one of them cannot be decoded.
    private static func codings(in fields: HTTPFields) -> [DecoderStage.Coding]? {
        var codings: [DecoderStage.Coding] = []
        for value in fields[all: "Content-Encoding"] {
            for part in value.split(separator: ",") {
                let name = part.filter { $0 != " " && $0 != "\t" }.lowercased()
                guard !name.isEmpty, name != "identity" else { continue }
                guard let coding = DecoderStage.Coding(name: name), codings.count < maxCodings else { return nil }
                codings.append(coding)
            }
        }
        return codings
    }

    func give(_ bytes: UnsafeRawBufferPointer) { unsafe stages.first?.give(bytes) }

    /// None if more of the body is needed.
    func take(atMost room: Int) -> [UInt8] { take(from: stages.count - 1, atMost: room) }

    private func take(from index: Int, atMost room: Int) -> [UInt8] {
        while true {
            let bytes = stages[index].take(atMost: room)
            guard bytes.isEmpty, index > 0 else { return bytes }
            let more = take(from: index - 1, atMost: ContentDecoder.piece)
            guard !more.isEmpty else { return [] }
            unsafe more.withUnsafeBytes { unsafe stages[index].give($0) }
        }
    }

    /// All that came was decoded to its end.
    var isWhole: Bool { stages.allSatisfy(\.isWhole) }
    /// The body is not in the stated coding.
    var hasFailed: Bool { stages.contains(where: \.hasFailed) }

    enum Decoded {
        /// There was nothing to decode, or it cannot be decoded: the body stays as it came, with its Content-Encoding.
        case asItCame
        case whole([UInt8])
        /// The beginning; the rest is damaged or missing.
        case beginning([UInt8])
        /// The beginning, as long as the limit.
        case tooLarge([UInt8])
    }

    /// A body of text was not encoded, whatever the response states; one that begins as gzip does is decoded even if
    /// the response states nothing: no JSON and no form begins like that.
    static func decode(_ body: [UInt8], _ fields: HTTPFields, limit: Int) -> Decoded {
        guard !body.isEmpty, fields.contains("Content-Encoding") || DecoderStage.isGzip(body) else { return .asItCame }
        guard !isText(body) else { return .whole(body) }
        guard var codings = codings(in: fields) else { return .asItCame }
        var decoded = body
        var rounds = 0
        repeat {
            if codings.isEmpty { codings = [.gzip] }
            let decoder = ContentDecoder(codings)
            unsafe decoded.withUnsafeBytes { unsafe decoder.give($0) }
            decoded = []
            while true {
                let piece = decoder.take(atMost: limit + 1 - decoded.count)
                guard !piece.isEmpty else { break }
                decoded += piece
                guard decoded.count <= limit else { return .tooLarge(Array(decoded.prefix(limit))) }
            }
            guard decoder.isWhole else { return decoded.isEmpty ? .asItCame : .beginning(decoded) }
            codings = []
            rounds += 1
        } while DecoderStage.isGzip(decoded) && rounds < maxCodings
        return .whole(decoded)
    }

    private static func isText(_ body: [UInt8]) -> Bool {
        body.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
            && String(validating: body, as: UTF8.self) != nil
    }
}

@safe private final class DecoderStage {
    enum Coding {
        case gzip, deflate, brotli, zstd

        /// Nil for a coding that libcurl was not built with.
        init?(name: String) {
            switch name {
            case "gzip", "x-gzip": self = .gzip
            case "deflate": self = .deflate
            case "br": self = .brotli
            case "zstd": self = .zstd
            default: return nil
            }
            let library =
                switch self {
                case .gzip, .deflate: ccurl_gzip
                case .brotli: ccurl_brotli
                case .zstd: ccurl_zstd
                }
            guard ccurl_decodes(library) else { return nil }
        }
    }

    private enum Phase {
        /// The first bytes are awaited.
        case start
        case decoding
        /// The body is not encoded.
        case plain
        case ended, failed
    }

    private let coding: Coding
    private var phase = Phase.start
    private var decoder: OpaquePointer?
    private var input = ByteQueue()

    init(_ coding: Coding) { self.coding = coding }

    deinit { unsafe ccurl_decoder_free(decoder) }

    var isWhole: Bool {
        switch phase {
        case .start, .plain: input.isEmpty
        case .ended: true
        case .decoding, .failed: false
        }
    }

    var hasFailed: Bool { phase == .failed }

    func give(_ bytes: UnsafeRawBufferPointer) {
        // Bytes after the end are ignored, unless they begin another member (RFC 1952 section 2.2).
        guard phase != .failed else { return }
        unsafe input.append(bytes)
    }

    func take(atMost room: Int) -> [UInt8] {
        while true {
            switch phase {
            case .start:
                guard input.count >= 2 else { return [] }
                begin()
            case .plain: return input.take(atMost: room)
            case .decoding:
                let bytes = decode(atMost: room)
                if !bytes.isEmpty || phase == .decoding { return bytes }
            case .ended:
                guard input.count >= 2 else { return [] }
                guard beginsMember else {
                    input.drop(input.count)
                    return []
                }
                begin()
            case .failed: return []
            }
        }
    }

    private func begin() {
        unsafe ccurl_decoder_free(decoder)
        unsafe decoder = nil
        guard let format else {
            phase = .plain
            return
        }
        unsafe decoder = ccurl_decoder_new(format)
        phase = unsafe decoder == nil ? .failed : .decoding
    }

    /// By the first bytes; nil for a body that is not encoded.
    private var format: Int32? {
        let first = first
        switch coding {
        case .gzip: return DecoderStage.isGzip(first) ? ccurl_gzip : nil
        case .deflate where DecoderStage.isGzip(first): return ccurl_gzip
        case .deflate:
            // RFC 1950 section 2.2.
            let isZlib = first[0] & 0x0F == 8 && (Int(first[0]) << 8 | Int(first[1])) % 31 == 0
            return isZlib ? ccurl_zlib : ccurl_deflate
        case .brotli: return ccurl_brotli
        case .zstd: return first == [0x28, 0xB5] ? ccurl_zstd : nil
        }
    }

    private var beginsMember: Bool {
        switch coding {
        case .gzip: DecoderStage.isGzip(first)
        case .zstd: first == [0x28, 0xB5]
        case .deflate, .brotli: false
        }
    }

    private var first: [UInt8] { unsafe input.withFirst(2) { unsafe [UInt8]($0) } }
    static func isGzip(_ bytes: [UInt8]) -> Bool { bytes.starts(with: [0x1F, 0x8B]) }

    /// Decodes until there is no room or no input. The decoder may also hold bytes of input that it has read.
    private func decode(atMost room: Int) -> [UInt8] {
        let decoder = unsafe decoder
        var read = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: min(room, 65_536)) { output, written in
            unsafe input.withFirst(input.count) { coded in
                let (from, to) = unsafe (coded.bindMemory(to: UInt8.self).baseAddress, output.baseAddress)
                while written < output.count, phase == .decoding {
                    var (readNow, writtenNow) = (coded.count - read, output.count - written)
                    let result = unsafe ccurl_decode(
                        decoder, from.map { unsafe $0 + read }, &readNow, to.map { unsafe $0 + written }, &writtenNow)
                    read += readNow
                    written += writtenNow
                    switch result {
                    case ccurl_decoding_ended: phase = .ended
                    case ccurl_decoding_failed: phase = .failed
                    default: if readNow == 0, writtenNow == 0 { return }
                    }
                }
            }
        }
        input.drop(read)
        return bytes
    }
}
