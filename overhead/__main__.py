from overhead.cli import main

raise SystemExit(main())
