/// The ways of frames of contents into packs, for all threads: while one thread hashes a frame into
/// a pack and writes it, the others have packs of their own.
///
/// A frame takes the first way that is free. So a run that stores little, or seldom at the same
/// time, makes one pack as if there were one way; and where all are busy a thread waits.
final class PackLanes: Sendable {
  let all: [PackLane]

  /// One way for each two workers, at least two for several: of the time that content takes which
  /// does not compress, about a third goes into the pack's hash and its file.
  init(_ packs: RunPacks, _ known: KnownBlobs, workers: Int) {
    all = (0..<min(workers, max(2, (workers + 1) / 2))).map { _ in PackLane(packs, known) }
  }

  /// Appends a frame to an open pack; a pack that is full then is closed soon.
  func append(_ frame: PackFrame) throws(StoreError) {
    for lane in all where try lane.appendIfFree(frame) { return }
    try all[0].append(frame)
  }

  /// Removes what is open.
  func discard() { for lane in all { lane.discard() } }
}
