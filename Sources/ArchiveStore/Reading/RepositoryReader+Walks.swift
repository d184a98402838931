internal import Codecs
public import SystemIO

// Walks and deliveries.

extension RepositoryReader {
  /// Walks a tree depth first, ordered by the bytes of the names, each directory before its
  /// content. Paths are relative to the tree. If a directory or some of its pages cannot be read,
  /// that is reported under the directory's path (empty for the tree itself) in place of the lost
  /// entries. After damage, only the step `stop` has an effect.
  ///
  /// Memory is bounded for any tree: of the open directories only the innermost 32 MiB (`budget`)
  /// are held, and the others are read again when the walk returns to them. A depth over 4,096
  /// directories, or a path over 64 KiB, is `damaged`.
  public func walkPastDamage(
    _ tree: TreeReference, _ body: (ByteString, TreeWalk.Finding) throws -> TreeWalk.Step
  ) throws {
    try walkPastDamage(tree, budget: TreeWalk.budget, body)
  }

  func walkPastDamage(
    _ tree: TreeReference, budget: Int,
    _ body: (ByteString, TreeWalk.Finding) throws -> TreeWalk.Step
  ) throws {
    var walk = TreeWalk(self, tree, budget: budget)
    guard let watch else { return try walk.run(body) }
    try walk.run { path, finding in
      if case .entry(let entry) = finding {
        return try watch.visit(path, node: entry.node) { try body(path, finding) }
      }
      watch.counters.didFail()
      return try body(path, finding)
    }
  }

  /// Walks several trees as one, depth first, ordered by the bytes of the names, each directory
  /// before its content. A directory that several trees share at a path is read once. Paths are
  /// relative to the trees. Handles damage like `walkPastDamage` and bounds memory in the same way.
  ///
  /// With `differencesOnly`, content that all trees share is not reported, and shared directories
  /// and pages are not read.
  public func walkTogether(
    _ trees: [TreeReference], differencesOnly: Bool = false,
    _ body: (ByteString, JointWalk.Finding) throws -> TreeWalk.Step
  ) throws {
    var walk = JointWalk(self, trees, differencesOnly: differencesOnly)
    defer { endExpecting() }
    guard let watch else { return try walk.run(body) }
    try walk.run { path, found in
      if case .entries(let entries, _) = found {
        return try watch.visit(path, node: entries[0].entry.node) { try body(path, found) }
      }
      watch.counters.didFail()
      return try body(path, found)
    }
  }

  /// Delivers blobs of a kind to `threads` threads in pack order. Each frame is read and decoded
  /// once, each blob is verified against its hash, and the wanted blobs of a frame are delivered
  /// together. The uses must be sorted by item, then by offset.
  ///
  /// Damaged and missing blobs are reported to the sink and do not end the delivery. A blob that
  /// was moved in the meantime, or that has another copy, counts as missing here, but
  /// `readBlob(_:)` finds it. `isStopping` is called between frames. A thread holds one stored
  /// frame, and decoded frames of at most 8 MiB plus one.
  ///
  /// - Throws: the first error of a sink, or `StoreError` if the storage fails.
  public func deliver<Sink: BlobDelivery.Sink>(
    _ uses: [BlobDelivery.Use], of kind: BlobKind = .data, threads: Int,
    isStopping: @escaping @Sendable () -> Bool, to makeSink: @escaping @Sendable () throws -> Sink
  ) throws {
    try prepare(uses, of: kind).run(threads: threads, isStopping: isStopping, to: makeSink)
  }

  /// Plans a delivery, and begins to fetch its frames ahead from another host. Until the delivery
  /// runs, the caller must not read anything that needs to be fetched.
  package func prepare(
    _ uses: [BlobDelivery.Use], of kind: BlobKind = .data
  ) throws(StoreError) -> PreparedDelivery {
    try settleLease()
    return PreparedDelivery(
      try index.plan(uses, of: kind), sizes: index.packSizes, from: repository.storage,
      under: lease)
  }
}
