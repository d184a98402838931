internal import Codecs
internal import Synchronization
internal import SystemIO

/// Where finished frames of one sort go: the pack that is open, and the next when it is full. For
/// any thread.
final class PackLane: Sendable {
  private let packs: RunPacks
  private let known: KnownBlobs
  private let open = Mutex<PackWriter?>(nil)

  init(_ packs: RunPacks, _ known: KnownBlobs) {
    self.packs = packs
    self.known = known
  }

  /// Appends a frame to the open pack; a pack that is full then is closed soon.
  func append(_ frame: PackFrame) throws(StoreError) {
    try closeSoon(try open.withLock { open throws(StoreError) in try append(frame, to: &open) })
  }

  /// Appends a frame, but for when another thread does just now: then false.
  func appendIfFree(_ frame: PackFrame) throws(StoreError) -> Bool {
    let full = try open.withLockIfAvailable { open throws(StoreError) in
      try append(frame, to: &open)
    }
    guard let full else { return false }
    try closeSoon(full)
    return true
  }

  /// Gives the packs that are full.
  private func append(
    _ frame: PackFrame, to open: inout PackWriter?
  ) throws(StoreError) -> [PackWriter] {
    var full: [PackWriter] = []
    if let pack = open, pack.isFull(before: frame.blobs.count) {
      full.append(pack)
      open = nil
    }
    let pack: PackWriter
    if let there = open { pack = there } else { pack = try packs.open() }
    open = pack
    let number = try pack.append(frame)
    known.place(frame.blobs, pack: pack.number, frame: number)
    if pack.isFull(before: 0) {
      full.append(pack)
      open = nil
    }
    return full
  }

  private func closeSoon(_ full: [PackWriter]) throws(StoreError) {
    for pack in full { try packs.closeSoon(pack) }
  }

  /// Takes the open pack out, for who closes it; the next frame opens another.
  func takeOpen() -> PackWriter? {
    open.withLock { open in
      defer { open = nil }
      return open
    }
  }

  /// Removes what is open.
  func discard() { takeOpen()?.discard() }
}
