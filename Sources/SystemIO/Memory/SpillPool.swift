internal import CLinux
internal import Glibc
internal import Synchronization

/// The memory of tables that grow with the number of entries: anonymous up to a budget, beyond it
/// pages of a temporary file, which the kernel can write out if memory is short (docs/scale.md).
///
/// The file is unnamed and only this user can read it. If it cannot be created or its volume is
/// full, memory stays anonymous.
@safe public final class SpillPool: Sendable {
  /// The pool of this process: 48 MiB, then a file in the system's directory for large temporary
  /// files (Filesystem Hierarchy Standard 3.0, 5.15).
  public static let shared = SpillPool(budget: 48 << 20, directories: ["/var/tmp", "/tmp"])

  /// The number of bytes that stay anonymous.
  public let budget: Int
  private let directories: [ByteString]
  private let state = Mutex(State())

  private struct State: ~Copyable {
    var anonymous = 0
    var spilled = 0
    var file: Descriptor?
    /// Whether the file has been created or has failed; a failure is not retried.
    var hasSought = false
    /// The offset of the next extent in the file.
    var end = 0
  }

  /// Creates a pool.
  ///
  /// - Parameter directories: the directories for the file, in order of preference.
  public init(budget: Int, directories: [ByteString]) {
    (self.budget, self.directories) = (budget, directories)
  }

  /// The number of bytes in the temporary file.
  public var spilledBytes: Int { state.withLock { $0.spilled } }

  /// The number of bytes that the temporary file takes on its volume.
  public var fileBytes: UInt64 {
    state.withLock { state in (try? state.file?.status().allocated) ?? 0 }
  }

  /// The size from which blocks are mapped, in bytes. Smaller ones come from the heap, which reuses
  /// them quickly, and do not count towards the budget.
  static let minimumMapped = 1 << 20

  /// Returns a block of at least `byteCount` bytes with undefined content.
  ///
  /// - Parameter isMapped: whether a small block is mapped as well, so that it can be spilled.
  @usableFromInline func allocate(_ byteCount: Int, isMapped: Bool = false) -> Block {
    guard isMapped || byteCount >= Self.minimumMapped else { return Block(heap: byteCount) }
    let page = Int(getpagesize())
    let size = (byteCount + page - 1) / page * page
    let block = state.withLock { state -> Block? in
      if state.anonymous + size > budget, let block = spill(size, &state) { return block }
      guard let start = unsafe Self.map(size, file: -1, at: 0) else { return nil }
      state.anonymous += size
      return unsafe Block(start, byteCount: size, backing: .anonymous, in: self)
    }
    return block ?? Block(heap: byteCount)
  }

  private func spill(_ size: Int, _ state: inout State) -> Block? {
    if !state.hasSought {
      state.hasSought = true
      state.file = makeFile()
    }
    // Space is reserved: writing to a page without a disk block would kill the program.
    let offset = state.end
    guard let file = state.file?.raw, posix_fallocate(file, offset, size) == 0,
      let start = unsafe Self.map(size, file: file, at: offset)
    else { return nil }
    state.end += size
    state.spilled += size
    return unsafe Block(start, byteCount: size, backing: .file(offset: offset), in: self)
  }

  private func makeFile() -> Descriptor? {
    for path in directories {
      if let file = try? Directory.open(path: path).createUnnamed() { return file }
    }
    return nil
  }

  private static func map(_ size: Int, file: Int32, at offset: Int) -> UnsafeMutableRawPointer? {
    let flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED
    let start = unsafe mmap(nil, size, PROT_READ | PROT_WRITE, flags, file, offset)
    return unsafe start == MAP_FAILED ? nil : start
  }

  fileprivate func release(_ size: Int, _ backing: Block.Backing) {
    state.withLock { state in
      switch backing {
      case .heap: break
      case .anonymous: state.anonymous -= size
      case .file(let offset):
        state.spilled -= size
        // Frees the space on the volume. Without hole punching it is freed when the program exits.
        if let file = state.file?.raw { _ = cl_punch_hole(file, Int64(offset), Int64(size)) }
      }
    }
  }
}

extension SpillPool {
  /// A block of a pool's memory, released with its last reference.
  @usableFromInline @safe final class Block: @unchecked Sendable {
    // Unchecked: only the holder of a unique reference writes; all others read.
    @usableFromInline let start: UnsafeMutableRawPointer
    @usableFromInline let byteCount: Int
    private let backing: Backing
    private let pool: SpillPool?

    /// Whether the block is in the heap and never spilled.
    var isOfHeap: Bool { pool == nil }

    fileprivate enum Backing: Sendable {
      case heap, anonymous
      case file(offset: Int)
    }

    fileprivate init(heap byteCount: Int) {
      unsafe start = .allocate(byteCount: byteCount, alignment: 16)
      self.byteCount = byteCount
      (backing, pool) = (.heap, nil)
    }

    fileprivate init(
      _ start: UnsafeMutableRawPointer, byteCount: Int, backing: Backing, in pool: SpillPool
    ) {
      unsafe self.start = start
      self.byteCount = byteCount
      (self.backing, self.pool) = (backing, pool)
    }

    deinit {
      if let pool {
        unsafe munmap(start, byteCount)
        pool.release(byteCount, backing)
      } else {
        unsafe start.deallocate()
      }
    }
  }
}
