extension Folder {
  /// The names of the children, sorted by their bytes, without `.` and `..`.
  public func names() throws(SystemError) -> [ByteString] {
    var listing = Listing()
    var names: [ByteString] = []
    let again = try duplicate()
    while try listing.fill(from: again.raw, path: path) {
      for place in listing.places { names.append(listing.name(place)) }
    }
    return names.sorted()
  }

  /// Whether the folder has no child.
  public func isEmpty() throws(SystemError) -> Bool { try names().isEmpty }
}
