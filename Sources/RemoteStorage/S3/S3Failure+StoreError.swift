package import ArchiveStore
internal import SystemIO

extension S3Failure {
  /// Returns the error of the storage: "cannot ACTION 'SUBJECT': …". It contains neither keys nor
  /// headers of the request.
  package func storeError(_ action: String, _ subject: String) -> StoreError {
    storeError(Task(action: action, subject: subject))
  }

  /// The reason in words, as the error of the storage gives it.
  var words: String { storeError("reach", "the store").reason }

  /// The words for an error: "cannot ACTION 'SUBJECT'".
  private struct Task {
    let action: String
    let subject: String

    func failed(
      _ reason: String, hint: String?, code: StoreError.Code = .system, cause: SystemError? = nil
    ) -> StoreError {
      StoreError(code, action, subject: subject, reason: reason, hint: hint, cause: cause)
    }
  }

  private func storeError(_ task: Task) -> StoreError {
    switch reason {
    case .endpoint(let url):
      // A password may be before the host.
      let shown = url.lastIndex(of: "@").map { "...\(url[$0...])" } ?? url
      return StoreError(
        .invalid, "use the endpoint", subject: ByteString(shown).description,
        reason: "it is not of the form 'https://host:port'",
        hint: "write the URL of the server alone")
    case .settings(let error):
      return StoreError(
        .system, error.operation.rawValue, subject: error.path.description, reason: error.reason,
        hint: error.hint, cause: error)
    case .command(let words):
      return task.failed(
        "the command for credentials failed: \(words)",
        hint: "check 'credential_process' of the profile")
    case .noCredentials(let profile, let exists):
      let name = ByteString(profile)
      // Without files there is no profile of this name.
      let isNamed = profile != "default"
      return task.failed(
        exists
          ? "the profile '\(name)' has no credentials"
          : isNamed
            ? "there is no profile '\(name)' in the files of the AWS tools"
            : "there are no credentials for the store",
        hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or add them to the profile "
          + "'\(name)' in ~/.aws/credentials")
    case .connection(let failure, let host): return connection(failure, host: host, task)
    case .refused(let refusal, let host): return refused(refusal, host: host, task)
    case .answer(let words, let host):
      return task.failed("'\(host)' \(words)", hint: Self.endpointHint)
    case .spool(let error):
      return task.failed(error.description, hint: error.hint, cause: error)
    }
  }

  private static let endpointHint = "check the endpoint: it has to be a server that speaks S3"

  private var repeated: String { attempts > 1 ? " (after \(attempts) attempts)" : "" }

  private func connection(_ failure: HTTPFailure, host: String, _ task: Task) -> StoreError {
    let about = "'\(host)': \(failure.reason)\(repeated)"
    switch failure.kind {
    case .cancelled:
      return task.failed(
        failure.reason, hint: "run it again: data stored so far is reused", code: .interrupted)
    case .tooLarge: return task.failed(failure.reason, hint: nil, code: .damaged)
    case .source(let error): return S3Failure(.spool(error)).storeError(task)
    case .insecure:
      return task.failed(
        "no secure connection to \(about)",
        hint: "check the endpoint, or name the file of its certificate authority (AWS_CA_BUNDLE)")
    case .unusable: return task.failed(about, hint: Self.endpointHint)
    case .unreachable, .timedOut, .dropped:
      return task.failed(
        "no response from \(about)",
        hint: "check the network, the endpoint and the proxy; stored objects are not affected")
    }
  }
}

extension S3Failure {
  /// EACCES and EDQUOT of Linux, which have error codes for programs.
  private static let (accessDenied, quotaExceeded): (Int32, Int32) = (13, 122)

  private func refused(_ refusal: S3Refusal, host: String, _ task: Task) -> StoreError {
    if refusal.isSkewed {
      return task.failed(
        Self.difference(refusal), hint: "set the clock of this machine, for example by NTP")
    }
    let words = Self.words(refusal, host: host)
    let cause = words.number.map { SystemError(.open, ByteString(task.subject), number: $0) }
    return task.failed(
      words.reason + repeated, hint: words.hint, code: words.code, cause: cause)
  }

  /// The parts of an error that depend on the answer.
  private struct Explanation {
    let reason: String
    let hint: String?
    var code = StoreError.Code.system
    var number: Int32?
  }

  private static func words(_ refusal: S3Refusal, host: String) -> Explanation {
    if refusal.isWebPage {
      let reason =
        "'\(host)' returned a web page (status \(refusal.status)) instead of an S3 "
        + "response"
      return Explanation(reason: reason, hint: endpointHint)
    }
    switch refusal.code {
    case "NoSuchBucket":
      return Explanation(
        reason: "'\(host)' has no such bucket",
        hint: "create the bucket, or check its name and the endpoint", code: .noRepository)
    case "NoSuchKey":
      return Explanation(reason: "it is not in the repository", hint: nil, code: .missing)
    case "InvalidRange":
      return Explanation(reason: "it ends before the range", hint: nil, code: .damaged)
    case "SignatureDoesNotMatch", "AuthFailure":
      return Explanation(
        reason: "the store refuses the signature: the secret access key is wrong",
        hint: credentialHint)
    case "InvalidAccessKeyId":
      return Explanation(reason: "the store does not know the access key ID", hint: credentialHint)
    case "ExpiredToken", "TokenRefreshRequired", "InvalidToken":
      return Explanation(
        reason: "the session token is invalid or has expired", hint: "renew the credentials")
    case "AccessDenied", "AllAccessDisabled", "AccountProblem":
      return Explanation(
        reason: "the store denies access" + quoted(refusal.message),
        hint: "check the permissions of these credentials for the bucket and the prefix, and the "
          + "owner and the ACL of the object",
        number: accessDenied)
    case "InvalidObjectState":
      return Explanation(
        reason: "the store has moved it to an archive, from which it cannot be read"
          + quoted(refusal.message),
        hint:
          "restore it from the archive with the store's own tools (restore-object), and exclude "
          + "the repository from the lifecycle rule that archives objects",
        number: accessDenied)
    case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull":
      return Explanation(
        reason: "the store has no space left, or the quota is exceeded",
        hint: "free space, or raise the quota", number: quotaExceeded)
    default: return otherWords(refusal, host: host)
    }
  }

  private static func otherWords(_ refusal: S3Refusal, host: String) -> Explanation {
    if let region = refusal.region, refusal.status <= 400 {
      return Explanation(
        reason: "the bucket is in the region '\(region)'", hint: "set the region to '\(region)'")
    }
    if refusal.status < 400 {
      let target = refusal.host.map { " to '\($0)'" } ?? ""
      return Explanation(
        reason: "'\(host)' redirects the request\(target), which is not followed: "
          + "credentials are for one host",
        hint: "set the endpoint and the region of the bucket")
    }
    if refusal.status == 501 || refusal.status == 405 {
      return Explanation(
        reason: "'\(host)' does not support the request", hint: endpointHint, code: .unsupported)
    }
    let message = quoted(refusal.message)
    return Explanation(
      reason: "'\(host)' answered with \(refusal.code) (status \(refusal.status))\(message)",
      hint: refusal.isPassing
        ? "the store is overloaded or has a problem: run it again later; data stored so far is "
          + "reused"
        : "look for this code in the documentation or the log of the store",
      number: refusal.status == 403 ? accessDenied : nil)
  }

  /// Returns the times of both clocks.
  private static func difference(_ refusal: S3Refusal) -> String {
    let own = Timestamp(seconds: refusal.localTime.seconds).rfc3339
    guard let server = refusal.serverTime, let difference = refusal.clockDifference else {
      return "the clock of this machine (\(own)) differs too much from that of the store"
    }
    let minutes = Int((min(abs(difference), 1e12) / 60).rounded())
    return "the clock of this machine (\(own)) differs from that of the store "
      + "(\(Timestamp(seconds: server.seconds).rfc3339)) by \(minutes) minutes"
  }

  private static let credentialHint =
    "check AWS_SECRET_ACCESS_KEY, or the profile in ~/.aws/credentials"

  private static func quoted(_ message: String) -> String {
    message.isEmpty ? "" : ": \"\(message)\""
  }
}
