/// Realistic paths of app containers with about seven components, deterministic for a seed.
struct PathCorpus {
  /// The bytes of the paths, concatenated.
  private(set) var bytes: [UInt8] = []
  /// The end offset of each path.
  private(set) var ends: [Int] = []
  private var state: UInt64

  init(count: Int, seed: UInt64) {
    state = seed
    let directories = (0..<(count / 25 + 1)).map { _ in directory() }
    for _ in 0..<count {
      bytes.append(contentsOf: (directories[next(directories.count)] + "/" + file()).utf8)
      ends.append(bytes.count)
    }
  }

  /// SplitMix64.
  private mutating func next(_ bound: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return Int((mixed ^ mixed >> 31) % UInt64(bound))
  }

  private mutating func word() -> String {
    let length = 3 + next(14)
    var word = ""
    for _ in 0..<length {
      word.unicodeScalars.append(Unicode.Scalar(UInt8(97 + next(26))))
    }
    return word
  }

  private mutating func directory() -> String {
    let tops = [
      "Documents", "Documents/Inbox", "Library/Application Support", "Library/Caches",
      "Library/Caches/WebKit/NetworkCache", "Library/Caches/com.apple.metal",
      "Library/Preferences", "Library/WebKit/WebsiteData", "tmp", "SystemData", "StoreKit",
      "Library/SplashBoard/Snapshots", "Library/Saved Application State",
    ]
    var path = tops[next(tops.count)]
    for _ in 0..<(3 + next(3)) { path += "/" + word() }
    return path
  }

  private mutating func file() -> String {
    let endings = ["plist", "png", "sqlite", "sqlite-wal", "json", "dat", "db", "jpg", "txt"]
    return word() + "." + endings[next(endings.count)]
  }
}
