internal import ArchiveStore
internal import Synchronization
internal import SystemIO

/// Puts content that programs will probably read next into the kernel's cache, so that they need
/// not ask for it: each request costs two thread switches, and on a busy machine the wait for both.
///
/// - Small files: after one was read, those beside it whose content is in the same decoded frame;
///   and while a program reads files or lists their attributes, those of each directory that it
///   lists. Of a directory whose files are read in order, the next 128 to 256 entries are decoded.
/// - Large files that are read in order: the next part, decoded before it is needed.
///
/// It works on two separate threads, because putting content waits for requests that read the same
/// pages. Requests do the rest themselves; only verified bytes are put.
final class ContentAhead: Sendable {
  /// Puts bytes at an offset of a node. Returns false if the kernel accepts no more.
  typealias Put = @Sendable (UInt64, UInt64, UnsafeRawBufferPointer) -> Bool

  private let files: SnapshotFileSystem
  private let put: Put
  /// The threads. Tests wait for their jobs.
  let workers: Workers
  private let waiting = Atomic<Int>(0)
  private let busy = Atomic<Int>(0)
  private let isStopped = Atomic<Bool>(false)
  /// The number of directories whose small files are put when they are listed.
  private let interest = Atomic<Int>(0)
  private let streams = Mutex(ReadStreams())
  private let directories = Mutex(DirectoryStreams())
  /// The parts that were put, so that a read that came first does not cause them to be put again.
  private let done = Mutex(CostBoundedCache<Done, Bool>(capacity: 10_000))

  private struct Done: Hashable {
    let part: DirectoryPart
    let frame: ObjectIdentifier

    init(_ part: DirectoryPart, _ frame: SharedReader.Frame) {
      (self.part, self.frame) = (part, ObjectIdentifier(frame))
    }
  }

  /// The maximum number of waiting jobs: further ones are dropped.
  private static let limit = 256
  /// The number of directories listed after a read that count as its continuation.
  private static let listings = 64
  /// The bytes that are put at once, which are whole pages.
  private static let step = 512 << 10

  init(_ files: SnapshotFileSystem, put: @escaping Put) throws {
    (self.files, self.put) = (files, put)
    workers = try Workers(count: 2, capacity: 2 * Self.limit, name: "fuse-ahead")
  }

  /// Lets the threads end. Remaining content is not put.
  func beginStop() { isStopped.store(true, ordering: .relaxed) }

  /// Ends the threads, and waits for them.
  func stop() {
    beginStop()
    workers.finish()
  }

  /// The number of threads that work.
  var working: Int { busy.load(ordering: .relaxed) }

  // MARK: - Observations

  /// Records that a range of a file was read.
  func didRead(_ number: UInt64, from offset: UInt64, count: Int, _ parts: [FilePart]) {
    interest.store(Self.listings, ordering: .relaxed)
    guard case .bytes(let slice)? = parts.first,
      let (size, ordinal, part) = files.place(of: number)
    else { return }
    if size <= SnapshotFileSystem.smallSize {
      if let work = directories.withLock({ $0.didRead(ordinal, in: part) }) {
        submit(work)
      } else {
        submit { [self] in putFiles(of: part, in: slice.frame, except: number) }
      }
      return
    }
    let range = streams.withLock {
      $0.next(number, from: offset, count: UInt64(count), size: size)
    }
    if let range { submit { [self] in putRange(range, of: number) } }
  }

  /// Records that the names of a file's extended attributes were read, as programs that copy files
  /// do.
  func didListAttributes(of number: UInt64) {
    interest.store(Self.listings, ordering: .relaxed)
    guard let part = files.part(of: number) else { return }
    if let work = directories.withLock({ $0.didList(part) }) { submit(work) }
  }

  /// Records a request for the entries of an open directory from an offset on: the kernel knows the
  /// earlier ones, and so accepts their content.
  func willList(_ handle: UInt64, from offset: Int64) {
    guard offset > 0, interest.load(ordering: .relaxed) > 0 else { return }
    interest.subtract(1, ordering: .relaxed)
    for part in files.newParts(of: handle, before: offset) {
      submit { [self] in putFiles(of: part) }
    }
  }

  // MARK: - Work

  private func submit(_ work: DirectoryStreams.Work) {
    submit { [self] in
      if work.includesPart { putFiles(of: work.part, decodes: true) }
      if let next = files.part(after: work.part) { putFiles(of: next, decodes: true) }
    }
  }

  private func submit(_ job: @escaping @Sendable () -> Void) {
    guard waiting.load(ordering: .relaxed) < Self.limit, !hasStopped else { return }
    waiting.add(1, ordering: .relaxed)
    workers.submit { [self] in
      waiting.subtract(1, ordering: .relaxed)
      busy.add(1, ordering: .relaxed)
      if !hasStopped { job() }
      busy.subtract(1, ordering: .relaxed)
    }
  }

  private var hasStopped: Bool { isStopped.load(ordering: .relaxed) }

  private func send(_ bytes: UnsafeRawBufferPointer, to number: UInt64, at offset: UInt64) {
    if !put(number, offset, bytes) { isStopped.store(true, ordering: .relaxed) }
  }

  /// Puts the small files of a part of a directory: those in one frame, in all held frames, or all.
  private func putFiles(
    of part: DirectoryPart, in frame: SharedReader.Frame? = nil, except number: UInt64? = nil,
    decodes: Bool = false
  ) {
    if let frame, done.withLock({ $0.value(Done(part, frame)) != nil }) { return }
    var claimed: [Done: Bool] = [:]
    for file in files.smallFiles(in: part) where file.number != number && !hasStopped {
      guard let content = files.content(of: file, decodes: decodes),
        frame == nil || content.frame === frame
      else { continue }
      let key = Done(part, content.frame)
      let isNew = claimed[key] ?? claim(key)
      claimed[key] = isNew
      guard isNew else { continue }
      content.frame.bytes.withUnsafeBytes {
        send(UnsafeRawBufferPointer(rebasing: $0[content.range]), to: file.number, at: 0)
      }
    }
  }

  /// Records that a thread puts the content of a frame. Returns false if one has done so or is
  /// doing so.
  private func claim(_ key: Done) -> Bool {
    done.withLock { done in
      if done.value(key) != nil { return false }
      done.insert(true, for: key, cost: 1)
      return true
    }
  }

  /// Puts a range of whole pages of a large file, or up to its end. Stops at a hole, and at damage,
  /// which is left to its readers.
  private func putRange(_ range: Range<UInt64>, of number: UInt64) {
    var offset = range.lowerBound
    while offset < range.upperBound, !hasStopped {
      let count = Int(min(UInt64(Self.step), range.upperBound - offset))
      guard let parts = files.partsToPut(number, from: offset, count: count) else { return }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(count)
      for case .bytes(let slice) in parts { bytes += slice.frame.bytes[slice.range] }
      bytes.withUnsafeBytes { send($0, to: number, at: offset) }
      offset += UInt64(count)
    }
  }
}
