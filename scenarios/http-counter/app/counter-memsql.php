<?php
// The counter in MemSQL, which speaks MySQL's protocol: by TCP, prepared, without a transaction, as published. With
// ?p=1 the worker keeps its connection. A failure is told with status 200, as the published pages did.
try {
    $db = new PDO(
        'mysql:host=' . getenv('DB_HOST') . ';port=' . getenv('DB_PORT') . ';dbname=dbbench',
        'bench',
        'bench',
        [PDO::ATTR_PERSISTENT => isset($_GET['p'])]
    );
    $db->prepare('update incr set number = number +1')->execute();
    $select = $db->prepare('select number from incr');
    $select->execute();
    printf('counter: %s', $select->fetchColumn());
} catch (PDOException $failure) {
    echo 'MemSQL failed: ', $failure->getMessage();
}
