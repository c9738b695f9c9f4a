/// How many requests are still allowed, of each client and each kind.
struct SupabaseLimits {
    private struct Bucket {
        var tokens: Double
        var at: Int
    }

    private var buckets: [String: Bucket] = [:]

    /// The limit of an endpoint for one address.
    mutating func throttle(_ call: SupabaseCall) throws(SupabaseErrorResponse) {
        guard let limit = call.settings.requestLimit else { return }
        let path = call.parts.joined(separator: "/")
        let isFactor = call.parts.first == "factors" && call.parts.count == 3
        let throttled = [
            "token", "signup", "otp", "magiclink", "recover", "resend", "verify", "sso",
            "passkeys/authentication/options",
        ]
        guard throttled.contains(path) || isFactor || (call.method == "PUT" && path == "user") else { return }
        let name = "\(isFactor ? call.parts[2] + " factor" : path) \(call.address)"
        guard take(name, limit: limit, seconds: 300, at: call.now) else {
            throw SupabaseErrorResponse(429, "over_request_rate_limit", "Request rate limit reached")
        }
    }

    /// Takes a token from a bucket that is filled up within so many seconds; false if there is none.
    mutating func take(_ name: String, limit: Int, seconds: Int, at now: Int) -> Bool {
        var bucket = buckets[name] ?? Bucket(tokens: Double(limit), at: now)
        let gained = Double(now - bucket.at) * Double(limit) / Double(seconds)
        bucket.tokens = min(Double(limit), bucket.tokens + gained)
        bucket.at = now
        defer { buckets[name] = bucket }
        guard bucket.tokens >= 1 else { return false }
        bucket.tokens -= 1
        return true
    }
}
