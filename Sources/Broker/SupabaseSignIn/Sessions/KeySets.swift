internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import SupabaseAuth

/// The keys that projects publish. Concurrent callers share one fetch; the result is cached.
final class SupabaseKeySets: ProviderMemory {
    private let documents: KeptDocuments<JSONWebKeySet>
    private let http: any HTTPClient

    init(http: any HTTPClient, work: Work, clock: BrokerClock) {
        self.http = http
        documents = KeptDocuments(work: work, clock: clock)
    }

    /// The project's keys. `isStale`: no cached key fits the token, so fetch them again.
    func keys(
        of account: Account, _ project: SupabaseProject, isStale: Bool
    ) async throws(BrokerError) -> JSONWebKeySet {
        // The gateway may require the project's API key for this request too.
        var request = project.keys()
        request.limits = HTTPLimits(maxBody: JSONWebKeySet.maxLength)
        let asked = request
        return try await documents.value(
            at: DocumentPlace(asked.url, account.trust), isStale: isStale
        ) { [http] () throws(BrokerError) in
            let response = try await account.send(asked, over: http)
            do throws(OAuthError) {
                return try JSONWebKeySet(parsing: response)
            } catch {
                throw .provider(
                    .invalidResponse(.supabase(.unusableKeys(host: asked.host, status: response.status))))
            }
        }
    }
}
