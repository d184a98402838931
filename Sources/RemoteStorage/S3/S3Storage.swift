package import ArchiveStore
internal import Codecs
internal import Synchronization
package import SystemIO

/// The storage of a repository as objects of an S3-compatible store.
///
/// An object appears under its key with all its bytes or not at all. There are no directories and
/// no rename. Unfinished objects are unnamed files of mode 0600 in a local directory.
package final class S3Storage: Storage {
  /// The options in addition to the location.
  package struct Options: Sendable {
    /// The directory for unfinished objects, as `SpoolDirectory.open` takes it.
    package var spool: ByteString?
    /// The connections. The file of certificates is that of the AWS settings if it is nil here.
    package var http = HTTPConfiguration()
    package var retries = RetryPolicy()
    /// The size in bytes from which an object is put in parts.
    package var multipartThreshold: UInt64 = 64 << 20
    /// The size of a part in bytes; larger if an object would have more than 10,000. S3 requires 5
    /// MiB.
    package var partSize: UInt64 = 16 << 20
    /// The number of parts, over all objects, that are put at the same time.
    package var connections = 4
    /// The environment of the AWS settings.
    package var environment: @Sendable (String) -> ByteString? = { Host.environment($0) }
    package var clock: @Sendable () -> Timestamp = { Host.now() }

    /// Creates the default options.
    package init() {}
  }

  /// The location, for messages.
  package let location: String
  let client: S3Client
  let options: Options
  /// The components before each name, with a slash at the end; empty for the complete bucket.
  private let prefix: ByteString
  private let bucket: String
  private let spool: Directory
  /// One element for each part that is being put.
  let partPlaces: BoundedQueue<UInt8>
  /// Whether the store compares bodies with their SHA-256, once tested.
  let comparesHashes = Mutex<Bool?>(nil)
  /// Whether the store creates objects exclusively, once tested.
  private let isExclusive = Mutex<Bool?>(nil)
  /// Whether the store begins a listing after a given key, as far as is known.
  private let startsAnywhere = Atomic<Bool>(true)

  /// Prepares a storage. No request is made.
  ///
  /// - Throws: if a setting cannot be read or the endpoint cannot be used.
  package init(_ location: S3Location, options: Options = Options()) throws(StoreError) {
    self.location = location.text.description
    bucket = location.bucket
    prefix = location.prefix.isEmpty ? "" : location.prefix.concatenating("/")
    partPlaces = BoundedQueue(capacity: options.connections)
    do throws(S3Failure) {
      let settings = S3Settings(profile: location.profile, environment: options.environment)
      var options = options
      if options.http.authorities == nil { options.http.authorities = try settings.authorities() }
      let region = try settings.region(of: location)
      let endpoint = try S3Endpoint(
        bucket: location.bucket, region: region, url: settings.endpoint(of: location),
        isPathStyle: location.pathStyle)
      let credentials = S3CredentialSource(settings, clock: options.clock)
      client = S3Client(
        endpoint: endpoint, region: region, credentials: credentials, http: options.http,
        policy: options.retries, clock: options.clock)
      self.options = options
    } catch { throw error.storeError("open the repository", location.text.description) }
    do { spool = try SpoolDirectory.open(cache: options.spool) } catch {
      throw StoreError(
        .system, error.operation.rawValue, subject: error.path.description, reason: error.reason,
        hint: error.hint, cause: error)
    }
  }

  /// Always false: S3 copies objects, one after another, and does not rename.
  package var canRename: Bool { false }

  /// Whether a listing can begin after any key: false once the store has ignored that.
  var beginsAnywhere: Bool {
    get { startsAnywhere.load(ordering: .relaxed) }
    set { startsAnywhere.store(newValue, ordering: .relaxed) }
  }

  /// Returns the key of an object.
  func key(_ path: ObjectPath) -> ByteString {
    prefix.concatenating(ByteString(joining: path.components))
  }

  /// Returns the prefix of the keys below a directory.
  func keys(below directory: ObjectPath) -> ByteString {
    directory.components.isEmpty ? prefix : key(directory).concatenating("/")
  }

  /// Makes a request, and converts a failure to an error of an object.
  func send(
    _ request: S3Request, to action: String, _ path: ObjectPath, into buffer: inout [UInt8]
  ) throws(StoreError) -> HTTPResponse {
    do { return try client.send(request, into: &buffer) } catch {
      throw self.error(error, to: action, path)
    }
  }

  /// Returns the error of an object. One that affects the whole store names the repository.
  func error(_ failure: S3Failure, to action: String, _ path: ObjectPath) -> StoreError {
    let code = failure.refusal?.code ?? ""
    let isOfObject =
      ["NoSuchKey", "InvalidRange", "AccessDenied", "InvalidObjectState"].contains(code)
      && failure.refusal?.isSkewed == false && failure.refusal?.isWebPage == false
    if (isOfObject || failure.isTooLarge) && path != .root {
      return failure.storeError(action, path.description)
    }
    if failure.refusal?.isBucketMissing == true {
      return failure.storeError("find the bucket", bucket)
    }
    let task = path == .root ? action : "\(action) '\(path)' in the repository"
    return failure.storeError(task, location)
  }

  /// Creates an unnamed local file for an unfinished object.
  func spoolFile() throws(SystemError) -> SpoolFile { SpoolFile(try spool.createUnnamed()) }
}

extension S3Failure {
  /// Whether the answer has more bytes than the request accepts.
  var isTooLarge: Bool {
    if case .connection(let failure, _) = reason { failure.kind == .tooLarge } else { false }
  }
}

// MARK: - Reading

extension S3Storage {
  /// Reads a complete object.
  package func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    var bytes: [UInt8] = []
    let request = S3Request(.get, key: key(path), limit: limit)
    _ = try send(request, to: "read", path, into: &bytes)
    return bytes
  }

  /// Reads a range of an object into a buffer, by one request.
  package func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    guard count > 0 else {
      buffer.removeAll(keepingCapacity: true)
      return
    }
    guard offset <= UInt64(Int64.max) - UInt64(count) else {
      throw endsEarly(path, before: offset &+ UInt64(count))
    }
    let range = "bytes=\(offset)-\(offset + UInt64(count) - 1)"
    let request = S3Request(.get, key: key(path), headers: [("range", range)], limit: count)
    let response: HTTPResponse
    do { response = try client.send(request, into: &buffer) } catch {
      // More bytes than requested say nothing about the object.
      throw error.isTooLarge ? ignoresRanges(path) : self.error(error, to: "read", path)
    }
    // A store that ignores the range returns the object from its first byte on.
    guard response.status == 206 || offset == 0, Self.hasRange(response, from: offset) else {
      throw ignoresRanges(path)
    }
    guard buffer.count == count else { throw endsEarly(path, before: offset &+ UInt64(count)) }
  }

  /// Whether an answer has bytes from an offset on, as far as it says which (RFC 9110, 14.4).
  private static func hasRange(_ response: HTTPResponse, from offset: UInt64) -> Bool {
    guard let range = response.header("content-range") else { return true }
    return range.hasPrefix("bytes \(offset)-")
  }

  /// Returns the error for a store, or a server before it, that answers with bytes of an object
  /// other than the requested ones. The object may be intact.
  private func ignoresRanges(_ path: ObjectPath) -> StoreError {
    StoreError(
      .system, "read a range of", subject: path.description,
      reason: "'\(client.endpoint.host)' ignores ranges",
      hint: "use the store itself as the endpoint, without a proxy or cache that changes requests")
  }

  private func endsEarly(_ path: ObjectPath, before end: UInt64) -> StoreError {
    StoreError(
      .damaged, "use", subject: path.description,
      reason: "it ends before byte \(end)")
  }
}

// MARK: - Changes

extension S3Storage {
  /// Starts an object in a local file.
  package func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    S3ObjectWriter(self)
  }

  /// Has no effect, as there are no directories.
  package func makeDirectories(_ names: [ByteString], in directory: ObjectPath) {}

  /// Puts an empty object.
  package func touch(_ path: ObjectPath) throws(StoreError) { try put(.bytes([]), as: path) }

  /// Puts empty objects, several at the same time.
  package func touch(_ paths: [ObjectPath]) throws(StoreError) {
    _ = try atOnce(paths) { path throws(StoreError) in try self.touch(path) }
  }

  /// Always fails.
  package func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    throw StoreError(
      .unsupported, "rename", subject: path.description,
      reason: "a store of objects cannot rename them")
  }

  /// Removes an object. A missing one is ignored, as the store does.
  package func remove(_ path: ObjectPath) throws(StoreError) {
    var answer: [UInt8] = []
    do { _ = try client.send(S3Request(.delete, key: key(path)), into: &answer) } catch {
      if error.refusal?.code == "NoSuchKey" { return }
      throw self.error(error, to: "remove", path)
    }
  }

  /// Removes objects, a thousand by each request.
  package func remove(_ paths: [ObjectPath]) throws(StoreError) {
    var rest = paths[...]
    while let first = rest.first {
      let some = rest.prefix(S3Deletion.limit)
      rest = rest.dropFirst(some.count)
      guard some.count > 1, let body = S3Deletion.body(some.map { key($0) }) else {
        for path in some { try remove(path) }
        continue
      }
      try remove(Array(some), body: body, naming: first)
    }
  }

  private func remove(
    _ paths: [ObjectPath], body: [UInt8], naming first: ObjectPath
  ) throws(StoreError) {
    let request = S3Request(
      .post, query: [("delete", "")], headers: [("content-type", "application/xml")],
      body: .bytes(body), limit: S3Listing.limits.bytes)
    var answer: [UInt8] = []
    var left: Set<ByteString> = []
    do throws(S3Failure) {
      _ = try client.send(request, into: &answer)
      do throws(S3Failure.Words) {
        left = Set(try S3Deletion.problems(reading: answer).map(\.key))
      } catch { throw S3Failure(.answer(error.text, host: client.endpoint.host)) }
    } catch {
      // Some stores remove only one object per request.
      guard error.refusal?.isUnsupported == true else {
        throw self.error(error, to: "remove", first)
      }
      left = Set(paths.map { key($0) })
    }
    // One after another, because that repeats requests and reports an error for each object.
    for path in paths where left.contains(key(path)) { try remove(path) }
  }
}

// MARK: - Creating exclusively

extension S3Storage {
  /// Whether the store creates an object only if it is missing. Tested once, when it is first
  /// needed: a second put of a probe must be refused, because some stores ignore the condition.
  package var canCreateExclusively: Bool {
    isExclusive.withLock { known in
      if let known { return known }
      guard let answer = try? probeCreation() else { return false }
      known = answer
      return answer
    }
  }

  /// The object with which the condition is tried. It stays if these credentials cannot remove it.
  private static let probe = ObjectPath.root.appending("probe")

  private func probeCreation() throws(StoreError) -> Bool {
    do throws(S3Failure) {
      guard try putNew([], Self.probe) else { return true }
      let isRefused = try !putNew([], Self.probe)
      try? remove(Self.probe)
      return isRefused
    } catch {
      if error.refusal?.isUnsupported == true { return false }
      throw self.error(error, to: "create", Self.probe)
    }
  }

  /// Creates an object if there is none of its name.
  package func create(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) -> Bool {
    guard canCreateExclusively else {
      throw StoreError(
        .unsupported, "create", subject: path.description,
        reason: "'\(client.endpoint.host)' cannot create an object only if it is missing")
    }
    do { return try putNew(bytes, path) } catch { throw self.error(error, to: "create", path) }
  }

  /// Puts an object on the condition that none exists. Returns false if one exists.
  private func putNew(_ bytes: [UInt8], _ path: ObjectPath) throws(S3Failure) -> Bool {
    let mark = Host.randomHex(bytes: 16)
    let headers = [
      ("content-type", Self.contentType), ("if-none-match", "*"), (Self.markHeader, mark),
    ]
    let request = S3Request(.put, key: key(path), headers: headers, body: .bytes(bytes))
    var answer: [UInt8] = []
    do {
      try requireStored(try client.send(request, into: &answer))
      return true
    } catch {
      guard error.refusal?.isExisting == true else { throw error }
      // An attempt whose answer was lost may have created it: then it has the mark. libcurl itself
      // repeats a request if a kept connection was closed, so the number of attempts is unknown.
      return try client.send(S3Request(.head, key: key(path)), into: &answer)
        .header(Self.markHeader) == mark
    }
  }

  /// The header with the random mark by which a program recognizes its own object.
  private static let markHeader = "x-amz-meta-mark"
}
