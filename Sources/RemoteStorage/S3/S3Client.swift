internal import Synchronization
package import SystemIO

/// Makes signed requests to the bucket of a store, and repeats those that fail for a temporary
/// reason.
package final class S3Client: Sendable {
  package let endpoint: S3Endpoint
  private let region: String
  private let http: HTTPClient
  private let credentials: S3CredentialSource
  private let policy: RetryPolicy
  private let clock: @Sendable () -> Timestamp
  /// Whether any request was answered, which shows that the endpoint is right.
  private let hasAnswered = Atomic<Bool>(false)
  /// Whether any answer came from a working store, rather than from a proxy whose store is down.
  private let hasServed = Atomic<Bool>(false)

  /// Creates a client.
  package init(
    endpoint: S3Endpoint, region: String, credentials: S3CredentialSource,
    http: HTTPConfiguration = HTTPConfiguration(), policy: RetryPolicy = RetryPolicy(),
    clock: @escaping @Sendable () -> Timestamp = { Host.now() }
  ) {
    self.endpoint = endpoint
    self.region = region
    self.credentials = credentials
    var http = http
    http.outages = policy.outages
    self.http = HTTPClient(http)
    self.policy = policy
    self.clock = clock
  }

  /// Makes a request. `buffer` gets the body of the answer.
  ///
  /// - Throws: if the last attempt did not succeed. The failure has the number of attempts.
  package func send(
    _ request: S3Request, into buffer: inout [UInt8]
  ) throws(S3Failure) -> HTTPResponse {
    let payload: S3Payload
    do { payload = try S3Payload(request) } catch { throw S3Failure(.spool(error)) }
    policy.outages?.begin()
    defer { policy.outages?.end() }
    var state = Attempts(began: policy.clock.now(), isCleaningUp: http.isStopping)
    while true {
      state.count += 1
      do throws(S3Failure) {
        return try attempt(request, payload, state: &state, into: &buffer)
      } catch {
        let isExpected = request.wrongSHA256 != nil && error.refusal?.isWrongHash == true
        guard !isExpected, let pause = pause(after: error, &state) else {
          throw S3Failure(error.reason, attempts: state.count)
        }
        policy.outages?.didFail(error.words)
        try wait(pause, state)
      }
    }
  }

  /// The attempts at one request.
  private struct Attempts {
    let began: Double
    let isCleaningUp: Bool
    var count = 0
    /// The number of answers that were errors. A store that answers again after a long time
    /// without an answer often begins with them.
    var refusals = 0
    /// Whether the store also refused other requests when this one was last refused.
    var isOut = false
    /// The credentials of the current attempt.
    var credentials: S3Credentials?
    var hasRenewed = false
  }

  /// Makes one attempt.
  private func attempt(
    _ request: S3Request, _ payload: S3Payload, state: inout Attempts, into buffer: inout [UInt8]
  ) throws(S3Failure) -> HTTPResponse {
    let current = try credentials.current()
    state.credentials = current
    let signed = signed(request, payload, by: current)
    let response: HTTPResponse
    do {
      response = try http.send(signed, into: &buffer)
    } catch {
      throw S3Failure(.connection(error, host: endpoint.host))
    }
    hasAnswered.store(true, ordering: .relaxed)
    // A portal answers any request with success.
    let reads = request.method == .get || request.method == .head
    if response.isSuccess, S3Refusal.isWebPage(response, body: buffer, typeCounts: reads) {
      throw S3Failure(.answer("returned a web page instead of an S3 response", host: endpoint.host))
    }
    if let coding = Self.coding(of: response), request.method == .get, response.isSuccess {
      let words =
        "compresses its responses (\(coding)) although this was not requested: a proxy or cache in "
        + "front of the store changes them"
      throw S3Failure(.answer(words, host: endpoint.host))
    }
    if response.status < 500 { hasServed.store(true, ordering: .relaxed) }
    if response.isSuccess, !(request.canFailLate && Self.isError(buffer)) { return response }
    let status = response.isSuccess ? 500 : response.status
    let refusal = S3Refusal(
      HTTPResponse(status: status, headers: response.headers), body: buffer, now: clock())
    throw S3Failure(.refused(refusal, host: endpoint.host))
  }

  /// Returns the compression of an answer's body, none of whose bytes are then an object's; nil if
  /// there is none. Not zstd: a program that copied a repository to the bucket may have recorded it
  /// for packs by their names (`.tar.zst`).
  private static func coding(of response: HTTPResponse) -> String? {
    let coding = response.header("content-encoding")?.lowercased()
    return coding.flatMap { ["gzip", "x-gzip", "deflate", "br"].contains($0) ? $0 : nil }
  }

  /// Whether an answer with a status of success has an error in its body, as S3 sends it if
  /// completing an upload takes long.
  private static func isError(_ body: [UInt8]) -> Bool {
    String(decoding: body.prefix(1024), as: UTF8.self).contains("<Error>")
  }

  private func signed(
    _ request: S3Request, _ payload: S3Payload, by credentials: S3Credentials
  ) -> HTTPRequest {
    let signature = SignatureV4(region: region, time: clock())
    var headers = request.headers
    headers.append(("x-amz-content-sha256", payload.sha256))
    headers.append(("x-amz-date", signature.moment))
    if let md5 = payload.md5 { headers.append(("content-md5", md5)) }
    if let token = credentials.token { headers.append(("x-amz-security-token", token)) }
    let path = endpoint.path(request.key)
    let parts = SignatureV4.Request(
      method: request.method.rawValue, path: path, query: request.query,
      headers: headers + [("host", endpoint.host)], payload: payload.sha256)
    let value = signature.authorization(
      for: parts, accessKey: credentials.accessKey, secret: credentials.secret)
    headers.append(("Authorization", value))
    return HTTPRequest(
      request.method, url: endpoint.url(path, query: SignatureV4.query(request.query)),
      headers: headers, body: request.body, limit: request.limit)
  }
}

// MARK: - Repeating

extension S3Client {
  /// Returns the time to wait before another attempt in seconds, or nil if there is none.
  private func pause(after failure: S3Failure, _ state: inout Attempts) -> Double? {
    switch failure.reason {
    case .connection(let connection, _):
      guard connection.isPassing, !(http.isStopping && !state.isCleaningUp) else { return nil }
      let limit =
        state.isCleaningUp
        ? policy.attemptsAfterStop
        : hasAnswered.load(ordering: .relaxed) ? Int.max : policy.firstAttempts
      let elapsed = policy.clock.now() - state.began
      guard state.count < limit, elapsed < policy.patience else { return nil }
      return policy.pause(after: state.count, jitter: Self.jitter())
    case .refused(let refusal, _):
      if refusal.isExpired, !state.hasRenewed, let refused = state.credentials {
        state.hasRenewed = true
        credentials.discard(refused)
        return 0
      }
      state.refusals += 1
      guard refusal.isPassing, isAllowed(after: refusal, &state) else { return nil }
      // The user waits for the end, whatever the store requests.
      let wait = state.isCleaningUp ? 0 : refusal.wait ?? 0
      return max(wait, policy.pause(after: state.refusals, jitter: Self.jitter()))
    default: return nil
    }
  }

  /// Whether to make another attempt after a possibly temporary error.
  ///
  /// A store that restarts, or a proxy before it, answers with errors for minutes: the client waits
  /// as for a lost connection, as long as other requests to the store fail as well. It does not
  /// wait for a single object that the store fails to send.
  private func isAllowed(after refusal: S3Refusal, _ state: inout Attempts) -> Bool {
    if state.isCleaningUp { return state.count < policy.attemptsAfterStop }
    if state.refusals < policy.attempts { return true }
    guard refusal.isOutage, hasServed.load(ordering: .relaxed),
      policy.clock.now() - state.began < policy.patience
    else { return false }
    // The wait reports that the user has interrupted it.
    if http.isStopping { return true }
    let wasOut = state.isOut
    state.isOut = !answers()
    // It works again: the request gets as many attempts as at its start.
    if wasOut, !state.isOut { state.refusals = 0 }
    return wasOut || state.isOut
  }

  /// Whether the store answers a request that concerns no object, even with a denial.
  private func answers() -> Bool {
    let request = S3Request(.get, query: [("list-type", "2"), ("max-keys", "1")])
    guard let payload = try? S3Payload(request) else { return false }
    var (state, buffer) = (Attempts(began: policy.clock.now(), isCleaningUp: false), [UInt8]())
    do throws(S3Failure) {
      _ = try attempt(request, payload, state: &state, into: &buffer)
      return true
    } catch { return error.refusal.map { !$0.isOutage } ?? false }
  }

  /// Returns a random number from 0 to 1.
  private static func jitter() -> Double { Double.random(in: 0...1) }

  /// Waits, in steps, so that a stop can be requested.
  private func wait(_ seconds: Double, _ state: Attempts) throws(S3Failure) {
    let end = policy.clock.now() + seconds
    while true {
      if http.isStopping, !state.isCleaningUp {
        let failure = HTTPFailure(.cancelled, "it was interrupted")
        throw S3Failure(.connection(failure, host: endpoint.host), attempts: state.count)
      }
      let rest = end - policy.clock.now()
      guard rest > 0 else { return }
      policy.clock.pause(min(rest, 0.2))
    }
  }
}
