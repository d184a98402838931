/// The entries of a package, one after another: once, forwards, whatever it is made of.
///
/// A directory comes before what is in it, and each path once. No path leads through a link of the
/// package, and no link out of the bundle.
public protocol EntrySource: ~Copyable {
  /// The next entry; nil behind the last one. What was not read of a file before is passed over.
  ///
  /// - Throws: `package` for a package that is damaged or is not what it was when it was opened,
  ///   `system` for a failed call.
  mutating func next() throws(ModelError) -> PackageEntry?

  /// Reads on in the file that `next` gave last: fills `buffer` from its start and gives how many
  /// bytes came, fewer than it has only at the file's end, and 0 from then on.
  ///
  /// All bytes that a file has come, as many as its entry says, or it throws.
  mutating func read(into buffer: inout [UInt8]) throws(ModelError) -> Int
}
