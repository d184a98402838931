internal import SystemIO

/// The key files of a mirror, compared with those of the original. The mirror gets those that it
/// lacks, and loses those that the original no longer has: the passphrase of a key that was removed
/// must not open the mirror.
struct MirrorKeys {
  private let source: RepositoryStorage
  private let target: RepositoryStorage
  /// The files that the mirror lacks, and the one that opened the original if the mirror's differs:
  /// it is intact, and after a rotation the mirror needs it.
  private var missing: [ByteString] = []
  /// The files that differ. Which of the two is intact is unknown.
  private(set) var different: [ByteString] = []
  /// The files that the original does not have and that are to be removed.
  private(set) var surplus: [ByteString] = []

  /// Compares the files.
  ///
  /// Nothing is to be removed unless the mirror has an intact file of the original, and the one
  /// that opened the original if a passphrase opened it: an original that has lost its key files is
  /// not one whose keys were removed.
  ///
  /// - Parameter keyName: the name of the key that opened the original; nil if none did.
  init(
    of source: RepositoryStorage, in target: RepositoryStorage, keyName: String?
  ) throws(StoreError) {
    (self.source, self.target) = (source, target)
    let present = Set(try target.listIfPresent(RepositoryLayout.keys) ?? [])
    let names = try source.listIfPresent(RepositoryLayout.keys) ?? []
    let opened = keyName.map { KeyFile.path($0).name }
    var intact: Set<String> = []
    for name in names {
      guard let bytes = try load(name, from: source) else { continue }
      let copy = present.contains(name) ? try load(name, from: target) : nil
      if copy == nil || copy != bytes && name == opened {
        missing.append(name)
      } else if copy != bytes {
        different.append(name)
        continue
      }
      if let key = KeyFile.name(of: name), KeyFile.fault(of: bytes) == nil { intact.insert(key) }
    }
    guard keyName.map(intact.contains) ?? !intact.isEmpty else { return }
    surplus = present.subtracting(names).filter { KeyFile.name(of: $0) != nil }.sorted()
  }

  private func load(
    _ name: ByteString, from storage: RepositoryStorage
  ) throws(StoreError) -> [UInt8]? {
    do throws(StoreError) {
      return try storage.load(
        RepositoryLayout.keys.appending(name), limit: FormatLimit.repositoryFile)
    } catch {
      // It was removed meanwhile.
      guard error.code == .missing else { throw error }
      return nil
    }
  }

  /// Copies the missing files, and then removes the surplus ones. Returns false if another program
  /// has the right to remove objects of the mirror: nothing is removed then.
  ///
  /// - Throws: `leaseLost`, failures of a storage.
  func update(by lease: Lease) throws(StoreError) -> Bool {
    for name in missing {
      guard let bytes = try load(name, from: source) else { continue }
      try lease.save(bytes, as: RepositoryLayout.keys.appending(name))
    }
    if surplus.isEmpty { return true }
    guard let right = try PruneLease(lease) else { return false }
    defer { right.release() }
    for name in surplus {
      try right.requireHeld()
      try lease.remove(RepositoryLayout.keys.appending(name))
    }
    return true
  }
}
