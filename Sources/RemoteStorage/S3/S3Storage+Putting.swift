internal import ArchiveStore
internal import Codecs
internal import Synchronization
internal import SystemIO

extension S3Storage {
  /// The media type of all objects.
  static let contentType = "application/octet-stream"
  /// The maximum number of parts of an object (Amazon S3 User Guide, "Multipart upload limits").
  private static let partLimit: UInt64 = 10_000

  /// Puts an object, in parts if it is large.
  func put(_ body: HTTPBody, as path: ObjectPath) throws(StoreError) {
    do throws(S3Failure) {
      if body.count > options.multipartThreshold, case .file(let file, _, _) = body {
        return try putInParts(file, count: body.count, as: path)
      }
      let request = S3Request(
        .put, key: key(path), headers: [("content-type", Self.contentType)], body: body)
      var answer: [UInt8] = []
      try requireStored(try sendBody(request, into: &answer))
    } catch {
      let failure = self.error(error, to: "write", path)
      guard failure.isRefused, isStored(body, as: path) else { throw failure }
    }
  }

  /// Whether an object has the bytes of a body. An attempt whose answer was lost may have put it,
  /// and a store that does not allow objects to be replaced refuses the next one. An empty object
  /// proves nothing; it may be put again for its time.
  private func isStored(_ body: HTTPBody, as path: ObjectPath) -> Bool {
    guard body.count > 0, let found = try? status(path), found.size == body.count else {
      return false
    }
    var (offset, wanted, stored) = (UInt64(0), [UInt8](), [UInt8]())
    while offset < body.count {
      let count = Int(min(4 << 20, body.count - offset))
      do {
        try body.read(count: count, at: offset, into: &wanted)
        try load(path, offset: offset, count: count, into: &stored)
      } catch { return false }
      guard wanted == stored else { return false }
      offset += UInt64(count)
    }
    return true
  }

  /// Checks that the answer to a put comes from a store, by its entity tag: another server may
  /// answer any request with success.
  @discardableResult
  func requireStored(_ response: HTTPResponse) throws(S3Failure) -> String {
    if let tag = response.header("etag"), !tag.isEmpty, !tag.utf8.contains(where: { $0 < 0x20 }) {
      return tag
    }
    let words = "does not confirm that an object is stored (no ETag in its answer)"
    throw S3Failure(.answer(words, host: client.endpoint.host))
  }

  /// Puts a file in parts. After a failure the store is asked to discard those that it has.
  private func putInParts(
    _ file: SpoolFile, count: UInt64, as path: ObjectPath
  ) throws(S3Failure) {
    let headers = [("content-type", Self.contentType)]
    var answer: [UInt8] = []
    _ = try client.send(
      S3Request(.post, key: key(path), query: [("uploads", "")], headers: headers), into: &answer)
    guard let root = try? XMLElement(reading: answer), let id = root.text(of: "UploadId"),
      !id.isEmpty
    else {
      let words = "started a multipart upload without returning an ID"
      throw S3Failure(.answer(words, host: client.endpoint.host))
    }
    let upload = PartialUpload(path: path, key: key(path), id: id, count: count)
    do throws(S3Failure) {
      try complete(upload, try putParts(of: file, upload))
    } catch {
      _ = try? client.send(
        S3Request(.delete, key: upload.key, query: [("uploadId", id)]), into: &answer)
      throw error
    }
  }

  /// An object whose parts are being put.
  private struct PartialUpload {
    let path: ObjectPath
    let key: ByteString
    /// The store's name of the upload.
    let id: String
    /// The size of the object in bytes.
    let count: UInt64
  }

  /// Puts the parts, several at the same time, and returns their entity tags.
  private func putParts(
    of file: SpoolFile, _ upload: PartialUpload
  ) throws(S3Failure) -> [String] {
    let mebibyte: UInt64 = 1 << 20
    let least = (upload.count / Self.partLimit / mebibyte + 1) * mebibyte
    let size = options.partSize * Self.partLimit < upload.count ? least : options.partSize
    let parts = Parts(count: Int((upload.count + size - 1) / size))
    let work: @Sendable () -> Void = { [self] in
      var answer: [UInt8] = []
      while let number = parts.next() {
        let offset = UInt64(number) * size
        let body = HTTPBody.file(file, offset: offset, count: min(size, upload.count - offset))
        let query = [("partNumber", "\(number + 1)"), ("uploadId", upload.id)]
        let request = S3Request(.put, key: upload.key, query: query, body: body)
        partPlaces.enqueue(0)
        do throws(S3Failure) {
          parts.finish(number, try requireStored(try sendBody(request, into: &answer)))
        } catch { parts.fail(error) }
        _ = partPlaces.dequeue(waitingAtMost: 0)
      }
    }
    let others = min(options.connections, parts.count) - 1
    var workers: Workers?
    // Without other threads this one puts all parts.
    if others > 0 { workers = try? Workers(count: others, capacity: others, name: "parts") }
    for _ in 0..<max(0, others) { workers?.submit(work) }
    work()
    workers?.finish()
    return try parts.tags()
  }

  /// The parts of an object that several threads put.
  private final class Parts: Sendable {
    let count: Int
    private let state: Mutex<State>

    private struct State {
      var next = 0
      var tags: [String]
      var failure: S3Failure?
    }

    init(count: Int) {
      self.count = count
      state = Mutex(State(tags: [String](repeating: "", count: count)))
    }

    /// Returns the number of a part that no thread has begun to put, or nil if there is none, or
    /// after a failure.
    func next() -> Int? {
      state.withLock { state in
        guard state.failure == nil, state.next < count else { return nil }
        defer { state.next += 1 }
        return state.next
      }
    }

    func finish(_ number: Int, _ tag: String) { state.withLock { $0.tags[number] = tag } }

    func fail(_ failure: S3Failure) { state.withLock { $0.failure = $0.failure ?? failure } }

    /// Returns the entity tags of all parts, or throws the first failure.
    func tags() throws(S3Failure) -> [String] {
      let (tags, failure) = state.withLock { ($0.tags, $0.failure) }
      if let failure { throw failure }
      return tags
    }
  }

  /// Combines the parts into an object.
  private func complete(_ upload: PartialUpload, _ tags: [String]) throws(S3Failure) {
    var text = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    for (index, tag) in tags.enumerated() {
      let tag = XMLElement.escaped(tag) ?? ""
      text += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(tag)</ETag></Part>"
    }
    text += "</CompleteMultipartUpload>"
    var request = S3Request(
      .post, key: upload.key, query: [("uploadId", upload.id)],
      headers: [("content-type", "application/xml")], body: .bytes(Array(text.utf8)))
    request.canFailLate = true
    var answer: [UInt8] = []
    do {
      _ = try client.send(request, into: &answer)
    } catch {
      // An earlier attempt may have completed it, although its answer was lost.
      guard error.refusal?.isMissing == true,
        let status = try? status(upload.path), status.size == upload.count
      else { throw error }
      return
    }
    guard let root = try? XMLElement(reading: answer),
      root.name == "CompleteMultipartUploadResult"
    else {
      let words = "does not confirm that the uploaded parts form an object"
      throw S3Failure(.answer(words, host: client.endpoint.host))
    }
  }
}

/// An object that is held in memory, and from 1 MiB on in an unnamed local file, until it is put.
final class S3ObjectWriter: ObjectWriter {
  private let storage: S3Storage
  private var bytes: [UInt8] = []
  private var file: SpoolFile?
  private var size: UInt64 = 0

  /// The bytes that are kept in memory.
  private static let memory = 1 << 20

  init(_ storage: S3Storage) { self.storage = storage }

  func append(_ more: [UInt8]) throws(StoreError) {
    size += UInt64(more.count)
    if file == nil, size <= UInt64(Self.memory) {
      bytes += more
      return
    }
    do {
      let file = try openFile()
      try file.descriptor.write(more)
    } catch {
      throw StoreError(
        .system, "write an unfinished object to", subject: error.path.description,
        reason: error.reason, hint: error.isFull ? Self.roomHint : Self.placeHint, cause: error)
    }
  }

  /// The remedy if there is no room for the file, which is in the cache directory.
  private static let roomHint =
    "free space or inodes there, or set XDG_CACHE_HOME to a directory on another volume"

  private static let placeHint =
    "make the cache directory writable, or set XDG_CACHE_HOME to another one"

  /// Returns the file, which gets the bytes in memory when it is created.
  private func openFile() throws(SystemError) -> SpoolFile {
    if let file { return file }
    let file = try storage.spoolFile()
    try file.descriptor.write(bytes)
    (self.file, bytes) = (file, [])
    return file
  }

  func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError) {
    let body = file.map { HTTPBody.file($0, offset: 0, count: size) } ?? .bytes(bytes)
    try storage.put(body, as: path)
    discard()
  }

  func discard() { (file, bytes) = (nil, []) }
}
