package import Codecs
package import SystemIO

extension SourceState {
  /// Makes the records of this run the state. To be called only after the snapshot is durable.
  ///
  /// - Parameters:
  ///   - containers: the containers that the run stored; their records replace the earlier ones.
  ///   - packs: the packs that the repository has and an index names, including those of this run.
  ///   - keepingOthers: whether the run covered a part, so that the records of other containers
  ///     remain.
  /// - Throws: `failed` if the state could not be written; the earlier state is then unchanged.
  package func finish(
    _ containers: [RecordedContainer], snapshot: Digest, packs: Set<Digest>,
    keepingOthers: Bool = false
  ) throws(OperationError) {
    guard let records, let place else { return }
    let paths = Set(containers.map(\.path))
    let others = keepingOthers ? self.containers.filter { !paths.contains($0.path) } : []
    let list = write(packs, to: records)
    let rows =
      containers.compactMap {
        ContainerTable.Row($0, snapshot: snapshot, packs: list)
      } + others.map { ContainerTable.Row($0, directory: $0.entry.directory, packs: $0.packs) }
    do throws(SystemError) {
      let head = try commit(ContainerTable.encode(rows), to: records, in: place)
      if head.isWorthCompacting { try compact(head, of: records, in: place) }
      if keepingOthers {
        // Records of a whole run that was interrupted remain valid; records of parts would add up.
        try interrupted.forget()
      } else if try place.directory.statusIfPresent(key.partial) != nil {
        try place.directory.remove(key.partial)
      }
    } catch {
      throw OperationError(
        .failed, "cannot save the state of this source: \(error)",
        hint: "the snapshot is complete; the next run reads more files than necessary")
    }
  }

  /// Writes the list of packs, unless it already exists.
  private func write(_ packs: Set<Digest>, to records: RecordFile) -> RecordPointer {
    let list = PackList.encode(packs)
    let place = RecordPointer(of: list, at: 0)
    if let same = containers.first(where: { $0.packs.moved(to: 0) == place }) {
      return same.packs
    }
    return records.append(list) ?? .nowhere
  }

  /// Writes the table and the head, and names a new file.
  private func commit(
    _ table: [UInt8], to records: RecordFile, in place: StateDirectory
  ) throws(SystemError) -> StateHead {
    let containers = records.append(table)
    try records.flush()
    var head = StateHead(key, program: program, end: records.end)
    head.containers = containers
    if let known {
      head.generation = known.head.generation + 1
      head.wholeSize = known.head.wholeSize
    }
    try write(head, records)
    if known == nil { try name(place) }
    return head
  }

  /// Rewrites the file without records that nothing points to, which are more than half of it.
  private func compact(
    _ head: StateHead, of records: RecordFile, in place: StateDirectory
  ) throws(SystemError) {
    guard let table = head.containers.flatMap({ records.read($0) }),
      let containers = ContainerTable.read(table)
    else { return }
    let target = RecordFile(try place.create(key.replacement), end: StateHead.firstRecord)
    var copy = RecordCopy(from: records, to: target)
    let rows = containers.map { container in
      let directory = container.entry.directory.flatMap { copy.copy($0) }
      let packs = records.read(container.packs).flatMap { target.append($0) }
      return ContainerTable.Row(container, directory: directory, packs: packs ?? .nowhere)
    }
    var compacted = head
    compacted.containers = target.append(ContainerTable.encode(rows))
    try target.flush()
    (compacted.end, compacted.wholeSize) = (target.end, target.end)
    try write(compacted, target)
    try name(place)
  }

  private func write(_ head: StateHead, _ file: RecordFile) throws(SystemError) {
    try file.descriptor.write(head.encoded(), at: head.place)
    try file.descriptor.sync()
  }

  /// Renames a complete new file to the state's name.
  private func name(_ place: StateDirectory) throws(SystemError) {
    try place.directory.rename(key.replacement, to: key.state, in: place.directory)
    try place.directory.sync()
  }
}
